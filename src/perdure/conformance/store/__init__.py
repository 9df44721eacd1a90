"""What every store must do, by theme."""
