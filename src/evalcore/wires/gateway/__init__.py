"""The model wire: every role's channel to its model, recorded and limited."""
