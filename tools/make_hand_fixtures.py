#!/usr/bin/python3
"""Writes the seeds of the MANO pickle and GLB fuzzers, which the tests read too; plain Python, no NumPy.

Their numbers are made up: a "hand" of five vertices, value i of an array of n being (i mod 17 - 8) / 64 for blend arrays (exact in any
float). No MANO data.
"""
import json
import pathlib
import struct

SEEDS = pathlib.Path(__file__).resolve().parent.parent / "tests/fuzz/seeds"
VERTICES, STORED_SHAPES, SHAPES = 5, 4, 2
PARENTS = [4294967295, 0, 1, 2, 0, 4, 5, 0, 7, 8, 0, 10, 11, 0, 13, 14]


class Emitter:
    """The opcodes that cPickle of Python 2 and pickle of Python 3 write for these objects under protocol 2."""

    def __init__(self, python2):
        self.python2 = python2
        self.out = b"\x80\x02"

    def op(self, *parts):
        self.out += b"".join(parts)

    def name(self, module, attribute):
        if not self.python2:
            module = {"copy_reg": "copyreg", "scipy.sparse.csc": "scipy.sparse._csc"}.get(module, module)
        self.op(b"c", module.encode(), b"\n", attribute.encode(), b"\n")

    def text(self, text):
        if self.python2:
            self.op(b"U", bytes([len(text)]), text.encode())
        else:
            self.op(b"X", struct.pack("<I", len(text)), text.encode())

    def data(self, data):
        if self.python2:
            self.op(b"T", struct.pack("<I", len(data)), data)
            return
        text = data.decode("latin1").encode()
        self.name("_codecs", "encode")
        self.op(b"X", struct.pack("<I", len(text)), text)
        self.text("latin1")
        self.op(b"\x86R")

    def number(self, number):
        self.op(b"J", struct.pack("<i", number))

    def shape(self, shape):
        self.op(b"(")
        for extent in shape:
            self.number(extent)
        self.op(b"t")

    def array(self, code, shape, values, fortran=False):
        letter = {"f8": "d", "f4": "f", "u4": "I", "i4": "i", "i8": "q"}[code]
        if fortran:  # two axes
            values = [values[r * shape[1] + c] for c in range(shape[1]) for r in range(shape[0])]
        self.name("numpy.core.multiarray", "_reconstruct")
        self.name("numpy", "ndarray")
        self.op(b"K\x00\x85")
        self.text("b")
        self.op(b"\x87R(K\x01")
        self.shape(shape)
        self.name("numpy", "dtype")
        self.text(code)
        self.op(b"K\x00K\x01\x87R(K\x03")
        self.text("<")
        self.op(b"NNN")
        for number in (-1, -1, 0):
            self.number(number)
        self.op(b"tb", b"\x88" if fortran else b"\x89")
        self.data(struct.pack(f"<{len(values)}{letter}", *values))
        self.op(b"tb")

    def chumpy(self, module, attribute, fields):
        self.name(module, attribute)
        self.op(b")\x81}(")
        for key, write in fields.items():
            self.text(key)
            write()
        self.text("_dirty_vars")
        self.name("__builtin__" if self.python2 else "builtins", "set")
        self.op(b"]\x85Ru", b"b")

    def sparse(self, rows, columns, dense):
        entries = [(c, r, dense[r * columns + c]) for c in range(columns) for r in range(rows) if dense[r * columns + c] != 0]
        self.name("copy_reg", "_reconstructor")
        self.name("scipy.sparse.csc", "csc_matrix")
        self.name("__builtin__" if self.python2 else "builtins", "object")
        self.op(b"N\x87R}(")
        self.text("_shape")
        self.shape([rows, columns])
        self.text("indptr")
        self.array("i4", [columns + 1], [sum(1 for e in entries if e[0] < c) for c in range(columns + 1)])
        self.text("indices")
        self.array("i4", [len(entries)], [e[1] for e in entries])
        self.text("data")
        self.array("f8", [len(entries)], [e[2] for e in entries])
        self.op(b"ub")


def blend(count):
    return [(i % 17 - 8) / 64 for i in range(count)]


def mano_pickle(python2):
    out = Emitter(python2)
    out.op(b"}(")
    entries = {
        "v_template": lambda: out.array("f8", [VERTICES, 3], [v / 1000 for v in range(3 * VERTICES)], fortran=python2),
        "posedirs": lambda: out.array("f4", [VERTICES, 3, 135], blend(VERTICES * 3 * 135)),
        "weights": lambda: out.array("f8", [VERTICES, 16], [1.0 if i % 16 == i // 16 else 0.0 for i in range(16 * VERTICES)]),
        "f": lambda: out.array("u4", [2, 3], [0, 1, 2, 2, 1, 3]),
        "kintree_table": lambda: out.array("u4", [2, 16], PARENTS + list(range(16))),
        "J_regressor": lambda: out.sparse(16, VERTICES, [1.0 if i // VERTICES % VERTICES == i % VERTICES else 0.0 for i in range(16 * VERTICES)]),
    }
    for key, write in entries.items():
        out.text(key)
        write()
    stored = VERTICES * 3 * STORED_SHAPES
    out.text("shapedirs")
    out.chumpy("chumpy.reordering", "Select", {
        "a": lambda: out.chumpy("chumpy.ch", "Ch", {"x": lambda: out.array("f8", [VERTICES, 3, STORED_SHAPES], blend(stored))}),
        "idxs": lambda: out.array("i8", [VERTICES * 3 * SHAPES], [i for i in range(stored) if i % STORED_SHAPES < SHAPES]),
        "preferred_shape": lambda: out.shape([VERTICES, 3, SHAPES]),
    })
    for key, word in (("bs_style", "lbs"), ("bs_type", "lrotmin")):
        out.text(key)
        out.text(word)
    out.op(b"u.")
    return out.out


def glb():
    """One triangle on two joints, beside a node without skin."""
    parts = [struct.pack("<9f", 0, 0, 0, 1, 0, 0, 0, 1, 0), bytes([0, 1, 0, 0] * 3), struct.pack("<12f", *[0.75, 0.25, 0, 0] * 3),
             struct.pack("<3HH", 0, 1, 2, 0)]
    for y in (0, 1):
        parts.append(struct.pack("<16f", 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, -y, 0, 1))
    binary = b"".join(parts)
    views, at = [], 0
    for size in (36, 12, 48, 8, 128):
        views.append({"buffer": 0, "byteOffset": at, "byteLength": size})
        at += size
    kinds = [(5126, "VEC3", 3), (5121, "VEC4", 3), (5126, "VEC4", 3), (5123, "SCALAR", 3), (5126, "MAT4", 2)]
    accessors = [{"bufferView": i, "componentType": c, "type": t, "count": n} for i, (c, t, n) in enumerate(kinds)]
    scene = {"asset": {"version": "2.0"}, "buffers": [{"byteLength": at}], "bufferViews": views, "accessors": accessors,
             "nodes": [{"children": [1, 3]}, {"name": "a", "children": [2]}, {"children": [4]}, {"mesh": 0, "skin": 0}, {"name": "b"}],
             "skins": [{"joints": [1, 4], "inverseBindMatrices": 4}],
             "meshes": [{"primitives": [{"attributes": {"POSITION": 0, "JOINTS_0": 1, "WEIGHTS_0": 2}, "indices": 3}]}]}
    text = json.dumps(scene, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 4)
    chunks = struct.pack("<II", len(text), 0x4E4F534A) + text + struct.pack("<II", len(binary), 0x004E4942) + binary
    return struct.pack("<4sII", b"glTF", 2, 12 + len(chunks)) + chunks


def main():
    for folder, files in {"mano_pickle": {"python2.pkl": mano_pickle(True), "python3.pkl": mano_pickle(False)},
                          "glb": {"triangle.glb": glb()}}.items():
        (SEEDS / folder).mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            (SEEDS / folder / name).write_bytes(data)
            print(f"{folder}/{name}: {len(data)} bytes")


if __name__ == "__main__":
    main()
