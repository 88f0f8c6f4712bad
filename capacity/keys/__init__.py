"""The key agent: keeps the gateway's list of client keys true to the clock and to each key's tokens of the day."""
