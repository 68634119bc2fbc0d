"""Elements one by one: expressions, functions, tables, and the loop over them."""
