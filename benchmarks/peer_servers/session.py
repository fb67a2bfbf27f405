"""The ONNX Runtime session of yardstick and peers, with the options of this project's service."""

import onnxruntime as ort


def open_session(file: str) -> ort.InferenceSession:
    """One thread that does not spin: each server has one core, and idle threads would occupy it."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return ort.InferenceSession(file, options, providers=["CPUExecutionProvider"])
