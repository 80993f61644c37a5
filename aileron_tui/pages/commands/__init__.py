"""What keys do, by group; `pages.registry` has all of them."""
