"""What a controller knows and decides: broker sets, who is alive, what is asked and answered."""
