"""The pages, and the program that writes those of them that follow from the code."""
