"""What a person took in, by digest."""
