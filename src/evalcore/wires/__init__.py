"""The two instrumented wires of a trial, and the one recorder behind them."""
