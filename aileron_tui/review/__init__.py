"""What the review page shows and asks: the console's items and its rules, as JSON."""
