"""What is of no use any more is forgotten after as many days as the settings say."""
