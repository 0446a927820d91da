"""The wire contract, generated from proto/ by `make proto`; a test fails when the two drift apart."""
