"""Evidence bytes: declared and put one by one, or many over one stream."""
