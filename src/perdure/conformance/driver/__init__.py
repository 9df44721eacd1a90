"""The kit of whoever writes a driver: what every engine underneath perdure has to do alike."""
