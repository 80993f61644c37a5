"""What keys do, by group; `pages.keymap` has all of them."""
