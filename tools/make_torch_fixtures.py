#!/usr/bin/python3
"""Writes tests/data/torch, tests/data/npz and the seeds of the archive fuzzers with the real torch and numpy.

Run with the distribution's Python (apt: python3-torch, python3-numpy); the committed files come from torch 1.13.0 and numpy 1.24.2.
NAME.json says what NAME.pt or NAME.ckpt holds (plain.json also for protocol4.pt and deflated.pt): {tensor: {dtype, shape, values}}, values
flat and row-major.
"""
import argparse
import collections
import io
import json
import pathlib
import pickle
import shutil
import zipfile

import numpy
import torch

DTYPES = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16", torch.float64: "f64", torch.int64: "i64",
          torch.int32: "i32", torch.int16: "i16", torch.int8: "i8", torch.uint8: "u8", torch.bool: "bool"}


def twin(path, tensors):
    described = {}
    for name, tensor in tensors.items():
        flat = tensor.detach().contiguous().view(-1)
        values = flat.double().tolist() if tensor.dtype.is_floating_point else flat.long().tolist()
        described[name] = {"dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape), "values": values}
    path.write_text(json.dumps(described, separators=(",", ":")) + "\n")


def tensors():
    """Every dtype and every way a tensor can lie in its storage."""
    g = torch.Generator().manual_seed(7)
    shared = torch.randn(48, generator=g)
    out = collections.OrderedDict()
    out["plain"] = torch.randn(3, 5, generator=g)
    out["strided.offset"] = torch.randn(8, 6, generator=g)[1::2, 2:5]
    out["shared.head"] = shared[:24].view(4, 6)
    out["shared.tail"] = shared[24:].view(2, 12)
    out["shared.all"] = shared
    out["transposed"] = torch.randn(4, 7, generator=g).t()
    out["expanded"] = torch.randn(1, 3, generator=g).expand(5, 3)
    out["parameter"] = torch.nn.Parameter(torch.randn(2, 2, generator=g))
    out["half"] = torch.randn(3, 4, generator=g).half()
    out["bfloat16"] = torch.randn(4, 3, generator=g).bfloat16()
    out["double"] = torch.randn(5, generator=g, dtype=torch.float64)
    out["int64"] = torch.arange(-4, 8).view(3, 4)
    out["int32"] = torch.tensor([-(2**31), 2**31 - 1], dtype=torch.int32)
    out["int16"] = torch.tensor([-32768, 32767], dtype=torch.int16)
    out["int8"] = torch.tensor([-128, 127], dtype=torch.int8)
    out["uint8"] = torch.tensor([[0, 255]], dtype=torch.uint8)
    out["bool"] = torch.tensor([True, False, True])
    out["scalar"] = torch.tensor(2.5)
    out["empty"] = torch.zeros(0, 3)
    return out


class CfgNode(dict):
    """Stands for yacs.config.CfgNode: a dict subclass with attributes."""


CfgNode.__module__ = "yacs.config"


def lightning(state):
    import sys
    import types
    module = types.ModuleType("yacs.config")
    module.CfgNode = CfgNode
    sys.modules["yacs"] = types.ModuleType("yacs")
    sys.modules["yacs.config"] = module
    config = CfgNode(MODEL=CfgNode(DEPTH=2))
    config.frozen = True
    config["SELF"] = config  # omegaconf's parent links make such loops
    return {"epoch": 3, "global_step": 1234567, "pytorch-lightning_version": "1.9.0", "state_dict": state,
            "loops": {"fit_loop": {"done": False, "rate": 0.5, "none": None, "set": {1, 2}, "big": 2**70}},
            "optimizer_states": [{"state": {0: {"exp_avg": torch.ones(3)}}, "param_groups": [{"params": [0, 1]}]}],
            "hyper_parameters": {"cfg": config, "path": pathlib.PurePosixPath("/data")}}


def archives(folder):
    state = tensors()
    torch.save(state, folder / "plain.pt")
    twin(folder / "plain.json", state)
    torch.save(dict(state), folder / "protocol4.pt", pickle_protocol=4)

    torch.manual_seed(3)
    module = torch.nn.Sequential(torch.nn.Conv2d(2, 3, 2), torch.nn.BatchNorm2d(3), torch.nn.Linear(4, 2, bias=False))
    torch.save(module.state_dict(), folder / "module.pt")  # an OrderedDict with _metadata
    twin(folder / "module.json", module.state_dict())

    some = collections.OrderedDict((k, state[k]) for k in ("plain", "parameter", "bfloat16", "int64", "shared.tail"))
    torch.save(lightning(some), folder / "lightning.ckpt")
    twin(folder / "lightning.json", some)

    with zipfile.ZipFile(folder / "plain.pt") as source, zipfile.ZipFile(folder / "deflated.pt", "w", zipfile.ZIP_DEFLATED) as out:
        for entry in source.infolist():
            out.writestr(zipfile.ZipInfo(entry.filename), source.read(entry), zipfile.ZIP_DEFLATED)

    torch.save({"a": torch.ones(2)}, folder / "legacy.pt", _use_new_zipfile_serialization=False)
    torch.jit.script(torch.nn.Linear(1, 1)).save(str(folder / "script.pt"))
    torch.save({"model": {"a": torch.ones(2)}, "epoch": 1}, folder / "nested.pt")
    torch.save({"a": torch.ones(2), "odd": collections.Counter("a")}, folder / "unknown_global.pt")
    torch.save({"state_dict": {"z": torch.ones(2, dtype=torch.complex64)}}, folder / "complex.pt")


def pickles(folder):
    value = {"none": None, "bools": [True, False], "ints": (0, 255, 256, 65536, -1, 2**31, -(2**63), 2**70, -(2**63) - 1),
             "float": -1.5e-3, "text": "h\u00e4nd \\ \U0001f44b\n", "bytes": b"\x00\xff'\"", "empty": ((), [], {}),
             "nested": [[1, [2, [3]]]], "set": {7}, "ordered": collections.OrderedDict(a=1), "shared": None}
    value["shared"] = [value["nested"], value["nested"]]
    for protocol in range(6):
        (folder / f"values_p{protocol}.pkl").write_bytes(pickle.dumps(value, protocol))


def npz(folder):
    g = numpy.random.default_rng(5)
    # The arrays of mano_mean_params.npz.
    mean = {"pose": g.standard_normal(96).astype("f4"), "shape": g.standard_normal(10).astype("f4"),
            "cam": numpy.array([0.9, 0, 0], "f4")}
    numpy.savez(folder / "mean_params.npz", **mean)
    numpy.savez_compressed(folder / "mean_params_deflated.npz", **mean)
    base = numpy.arange(24).reshape(2, 3, 4)
    numpy.savez_compressed(folder / "kinds.npz", fortran=numpy.asfortranarray(base.astype("f8")), big=base.astype(">i4"),
                           big_fortran=numpy.asfortranarray(base.astype(">f2")), bool=base % 2 == 0, scalar=numpy.float64(2.5),
                           empty=numpy.zeros((0, 3), "u1"))
    numpy.savez(folder / "object.npz", a=numpy.array([{"x": 1}], dtype=object))
    numpy.savez(folder / "text.npz", a=numpy.array(["x"]))


def seeds(data, folder):
    small = io.BytesIO()
    torch.save(collections.OrderedDict(a=torch.arange(6.0).view(2, 3).t(), b=torch.nn.Parameter(torch.ones(0).half())), small)
    named = {"torch_archive": {"small.pt": small.getvalue()}, "zip": {"small.pt": small.getvalue()}, "pickle": {}, "npz": {}}
    for name in ("lightning.ckpt", "module.pt"):
        named["torch_archive"][name] = (data / "torch" / name).read_bytes()
    for name in ("mean_params.npz", "kinds.npz"):
        named["npz"][name] = (data / "npz" / name).read_bytes()
    named["zip"]["kinds.npz"] = named["npz"]["kinds.npz"]
    for protocol in (0, 2, 4):
        named["pickle"][f"values_p{protocol}.pkl"] = (data / "torch" / f"values_p{protocol}.pkl").read_bytes()
    with zipfile.ZipFile(data / "torch" / "lightning.ckpt") as archive:
        named["pickle"]["lightning.pkl"] = archive.read("lightning/data.pkl")
    with zipfile.ZipFile(small) as archive:
        named["torch_archive"]["small.pkl"] = archive.read("archive/data.pkl")
    for target, files in named.items():
        fresh(folder / target)
        for name, contents in files.items():
            (folder / target / name).write_bytes(contents)


def fresh(folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tests", nargs="?", default=pathlib.Path(__file__).resolve().parent.parent / "tests", type=pathlib.Path)
    tests = parser.parse_args().tests
    data = tests / "data"
    for name, make in {"torch": lambda f: (archives(f), pickles(f)), "npz": npz}.items():
        fresh(data / name)
        make(data / name)
    seeds(data, tests / "fuzz" / "seeds")


if __name__ == "__main__":
    main()
