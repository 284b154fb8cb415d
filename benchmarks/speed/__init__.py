"""How fast Normata answers, compared with the limit of the machine and with a typical application."""
