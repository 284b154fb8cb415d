"""How fast Normata answers, beside what the same machine does at best and what most people would write."""
