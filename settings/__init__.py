"""The typed stack configuration: `Settings.load` is its only reader."""
