"""Messages of ONNX as files hold them: their canonical form, checks, and what follows from them."""
