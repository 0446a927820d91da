"""Several servers as one: who matches what, who delivers what, and how they hear of each other."""
