"""Peers' checkpoints -> published skill libraries. torch only reads the file; its tensors are
checked, then rebuilt as ONNX.
"""
