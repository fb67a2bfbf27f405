"""Published graphs, ready to run: numpy in, numpy out."""
