"""What every PRW program needs and no library gives as we need it."""
