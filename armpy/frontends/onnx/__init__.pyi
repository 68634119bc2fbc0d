from armpy.frontends.onnx.moving import with_data_names as with_data_names

__all__: list[str]
