"""What a screen shows and a key does, without Textual: a page draws lines into the areas of its screen."""
