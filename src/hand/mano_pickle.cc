#include "hand/mano_pickle.h"

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "io/bytes.h"
#include "io/mapped_file.h"
#include "io/npy_header.h"
#include "io/pickle.h"

namespace sinew {
namespace {

using pickle::Kind;
using pickle::Ref;

constexpr std::string_view kFormatName = "MANO pickle";
constexpr std::int64_t kMaxVertices = 65536;  // of the dense regressor; MANO has 778
constexpr int kMaxNesting = 4;                // of chumpy containers; the published file has two
/// The arrays of the model, and the two of the axis-angle pose space that converters keep beside them.
constexpr std::array<std::string_view, 9> kArrays = {"v_template",    "shapedirs",  "posedirs",
                                                     "J_regressor",   "weights",    "f",
                                                     "kintree_table", "hands_mean", "hands_components"};

constexpr std::array<std::string_view, 4> kReconstruct = {
    "numpy.core.multiarray._reconstruct", "numpy._core.multiarray._reconstruct", "copy_reg._reconstructor",
    "copyreg._reconstructor"};
constexpr std::array<std::string_view, 2> kFromBuffer = {"numpy.core.numeric._frombuffer",
                                                         "numpy._core.numeric._frombuffer"};
constexpr std::array<std::string_view, 3> kCsc = {"scipy.sparse.csc.csc_matrix",
                                                  "scipy.sparse._csc.csc_matrix", "scipy.sparse.csc_matrix"};
constexpr std::string_view kSelect = "chumpy.reordering.Select";
constexpr std::string_view kCh = "chumpy.ch.Ch";
constexpr std::array<std::string_view, 9> kOthers = {
    "numpy.ndarray",   "numpy.dtype",     "__builtin__.object",
    "builtins.object", "__builtin__.set", "builtins.set",
    "_codecs.encode",  kSelect,           kCh};

bool is_any(std::string_view name, std::span<const std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_allowed(std::string_view global) {
  return is_any(global, kReconstruct) || is_any(global, kFromBuffer) || is_any(global, kCsc) ||
         is_any(global, kOthers);
}

/// "module.name" of an object's class, whether it came through NEWOBJ or a reconstructor; empty otherwise.
std::string_view class_of(Ref value) {
  if (value->kind != Kind::kObject || value->callable == nullptr) return {};
  const std::string_view callable = value->callable->text;
  if (!is_any(callable, kReconstruct)) return callable;
  const auto& arguments = value->arguments->items;
  if (arguments.empty() || arguments[0]->kind != Kind::kGlobal) return {};
  return arguments[0]->text;
}

std::string described(Ref value) {
  const std::string_view name = class_of(value);
  return name.empty() ? std::string(to_string(value->kind)) : quoted(name);
}

Ref field(Ref object, std::string_view name) {
  const Ref state = object->state;
  const Ref found = state == nullptr || state->kind != Kind::kDict ? nullptr : state->find(name);
  if (found == nullptr) throw fail(ErrorCode::kFormat, "{} without {}", described(object), name);
  return found;
}

Shape shape_of(Ref value, std::string_view what) {
  if (value->kind != Kind::kTuple && value->kind != Kind::kList) {
    throw fail(ErrorCode::kFormat, "{} is a {}, expected a tuple", what, to_string(value->kind));
  }
  std::vector<std::int64_t> dims;
  for (const Ref item : value->items) {
    if (item->kind != Kind::kInt)
      throw fail(ErrorCode::kFormat, "{} holds a {}", what, to_string(item->kind));
    dims.push_back(item->integer);
  }
  return Shape(dims);
}

DType dtype_of(Ref value) {
  if (class_of(value) != "numpy.dtype" || value->arguments->items.empty()) {
    throw fail(ErrorCode::kFormat, "a dtype that is a {}", described(value));
  }
  constexpr std::array<std::pair<std::string_view, DType>, 12> kTypes = {{{"f8", DType::kF64},
                                                                          {"f4", DType::kF32},
                                                                          {"f2", DType::kF16},
                                                                          {"i8", DType::kI64},
                                                                          {"i4", DType::kI32},
                                                                          {"i2", DType::kI16},
                                                                          {"i1", DType::kI8},
                                                                          {"u8", DType::kU64},
                                                                          {"u4", DType::kU32},
                                                                          {"u2", DType::kU16},
                                                                          {"u1", DType::kU8},
                                                                          {"b1", DType::kBool}}};
  std::string_view code = value->arguments->items[0]->text;
  std::string_view order = "<";
  if (const Ref state = value->state; state != nullptr && state->items.size() > 1)
    order = state->items[1]->text;
  if (code.size() == 3) {
    order = code.substr(0, 1);
    code.remove_prefix(1);
  }
  const auto found =
      std::find_if(kTypes.begin(), kTypes.end(), [&](auto& type) { return type.first == code; });
  if (found == kTypes.end() || order == ">") {
    throw fail(ErrorCode::kUnsupported, "dtype {}{}, expected little-endian numbers", quoted(order),
               quoted(code));
  }
  return found->second;
}

class ManoPickle final : public Checkpoint {
 public:
  ManoPickle(std::span<const std::byte> bytes, const std::string& name)
      : Checkpoint(name), document_(pickle::Document::parse(bytes, name, is_allowed, limits())) {
    const Ref root = document_.root();
    if (root->kind != Kind::kDict) {
      throw fail(ErrorCode::kFormat, "{}: a pickled {}, expected MANO's dict", name, to_string(root->kind));
    }
    check_word(*root, "bs_style", "lbs");
    check_word(*root, "bs_type", "lrotmin");
    for (const std::string_view key : kArrays) {
      const Ref value = root->find(key);
      if (value == nullptr) continue;
      try {
        tensors_[std::string(key)] = array(value, 0);
      } catch (const Error& error) {
        throw error.prefixed(fmt::format("{}: {}: ", name, key));
      }
    }
  }

  std::string_view format() const override { return kFormatName; }
  void release(const TensorView& /*view*/) const override {}  // lives in memory of its own

 private:
  static pickle::Limits limits() {
    pickle::Limits out;
    out.max_bytes = out.max_text = std::size_t{32} << 20;  // the published file has 3.8 MB
    out.max_nodes = out.max_memo = 100'000;                // and some 700 values
    return out;
  }

  void check_word(const pickle::Value& root, std::string_view key, std::string_view expected) const {
    const Ref value = root.find(key);
    if (value == nullptr || value->is_text(expected)) return;
    throw fail(ErrorCode::kMismatch, "{}: {} is {}, expected {}", path_, key, quoted(value->text), expected);
  }

  TensorView keep(Tensor tensor) { return owned_.emplace_back(std::move(tensor)); }

  TensorView array(Ref value, int depth) {
    if (depth > kMaxNesting)
      throw fail(ErrorCode::kLimit, "containers nested more than {} deep", kMaxNesting);
    const std::string_view name = class_of(value);
    if (name == "numpy.ndarray") return numpy_array(value);
    if (is_any(name, kFromBuffer)) return buffer_array(value->arguments->items);
    if (is_any(name, kCsc)) return dense(value);
    if (name == kCh) return array(field(value, "x"), depth + 1);
    if (name == kSelect) return selected(value, depth);
    throw fail(ErrorCode::kFormat, "a {}, expected an array", described(value));
  }

  /// State of an ndarray: version, shape, dtype, Fortran order, bytes.
  TensorView numpy_array(Ref value) {
    const Ref state = value->state;
    if (state == nullptr || state->kind != Kind::kTuple || state->items.size() != 5) {
      throw fail(ErrorCode::kFormat, "an ndarray without its state");
    }
    const auto& items = state->items;
    const bool fortran = items[3]->boolean || items[3]->integer != 0;
    return view(items[4], dtype_of(items[2]), shape_of(items[1], "shape"), fortran);
  }

  /// Protocol 5: bytes, dtype, shape, order.
  TensorView buffer_array(const std::vector<Ref>& items) {
    if (items.size() != 4) throw fail(ErrorCode::kFormat, "an array buffer with {} parts", items.size());
    return view(items[0], dtype_of(items[1]), shape_of(items[2], "shape"), items[3]->is_text("F"));
  }

  TensorView view(Ref data, DType dtype, const Shape& shape, bool fortran) {
    const std::string_view bytes = bytes_of(data);
    NpyHeader header;
    header.fortran_order = fortran;
    header.shape = shape;
    const TensorView out(dtype, shape, header.strides(), bytes.data());
    if (out.bytes() != bytes.size()) {
      throw fail(ErrorCode::kFormat, "{} {} takes {} bytes, the pickle has {}", to_string(dtype),
                 to_string(shape), out.bytes(), bytes.size());
    }
    return out;
  }

  /// Array data: bytes, or what Python 3 makes of bytes in old protocols: _codecs.encode(text, "latin1").
  std::string_view bytes_of(Ref data) {
    if (data->kind == Kind::kBytes) return data->text;
    const bool encoded = data->is_call_of("_codecs.encode") && data->arguments->items.size() == 2 &&
                         data->arguments->items[0]->kind == Kind::kString;
    if (!encoded) throw fail(ErrorCode::kFormat, "array data is a {}, expected bytes", described(data));
    std::string& out = texts_.emplace_back();
    const std::string& text = data->arguments->items[0]->text;
    for (std::size_t i = 0; i < text.size(); ++i) {
      auto c = static_cast<unsigned char>(text[i]);
      if (c >= 0x80) {  // two bytes of UTF-8 for U+0080 to U+00FF
        if ((c != 0xc2 && c != 0xc3) || i + 1 == text.size()) {
          throw fail(ErrorCode::kFormat, "array data holds a character beyond latin-1");
        }
        c = static_cast<unsigned char>((c << 6U) | (static_cast<unsigned char>(text[++i]) & 0x3fU));
      }
      out.push_back(static_cast<char>(c));
    }
    return out;
  }

  /// Indices of a given 32 or 64 bit array, each in 0..below-1 or, for ends, 0..below.
  static std::vector<std::int64_t> indices(const TensorView& from, std::int64_t below,
                                           std::string_view what) {
    // At least four bytes each: what is read bounds what is made of it.
    if (from.dtype != DType::kI32 && from.dtype != DType::kI64 && from.dtype != DType::kU32 &&
        from.dtype != DType::kU64) {
      throw fail(ErrorCode::kFormat, "{} are {}, expected 32 or 64 bit integers", what,
                 to_string(from.dtype));
    }
    const Tensor copy = convert(from, DType::kI64);
    const auto values = copy.as<std::int64_t>();
    for (const std::int64_t v : values) {
      if (v < 0 || v >= below)
        throw fail(ErrorCode::kFormat, "{} holds {}, expected below {}", what, v, below);
    }
    return {values.begin(), values.end()};
  }

  TensorView selected(Ref value, int depth) {
    const TensorView from = array(field(value, "a"), depth + 1);
    const auto picks = indices(array(field(value, "idxs"), kMaxNesting), from.shape.count(), "idxs");
    const Shape shape = shape_of(field(value, "preferred_shape"), "preferred_shape");
    if (shape.count() != static_cast<std::int64_t>(picks.size())) {
      throw fail(ErrorCode::kFormat, "{} idxs, preferred_shape {}", picks.size(), to_string(shape));
    }
    Tensor out(DType::kF64, shape);
    const auto values = out.as<double>();
    for (std::size_t i = 0; i < picks.size(); ++i) values[i] = element(from, picks[i]);
    return keep(std::move(out));
  }

  TensorView dense(Ref value) {
    const Shape shape = shape_of(field(value, "_shape"), "_shape");
    if (shape.rank() != 2 || shape[0] != 16 || shape[1] < 1 || shape[1] > kMaxVertices) {
      throw fail(ErrorCode::kFormat, "a sparse matrix of shape {}, expected [16,V]", to_string(shape));
    }
    const TensorView data = array(field(value, "data"), kMaxNesting);
    const std::int64_t count = data.shape.count();
    const auto rows = indices(array(field(value, "indices"), kMaxNesting), shape[0], "indices");
    const auto ends = indices(array(field(value, "indptr"), kMaxNesting), count + 1, "indptr");
    const bool fits = static_cast<std::int64_t>(rows.size()) == count &&
                      static_cast<std::int64_t>(ends.size()) == shape[1] + 1 && ends.front() == 0 &&
                      ends.back() == count && std::is_sorted(ends.begin(), ends.end());
    if (!fits) throw fail(ErrorCode::kFormat, "the parts of the sparse matrix do not fit together");
    Tensor out(DType::kF64, shape);
    const auto values = out.as<double>();
    for (std::int64_t column = 0; column < shape[1]; ++column) {
      const auto c = static_cast<std::size_t>(column);
      for (std::int64_t i = ends[c]; i < ends[c + 1]; ++i) {
        const std::int64_t row = rows[static_cast<std::size_t>(i)];
        values[static_cast<std::size_t>(row * shape[1] + column)] += element(data, i);  // repeated: summed
      }
    }
    return keep(std::move(out));
  }

  pickle::Document document_;
  std::deque<Tensor> owned_;
  std::deque<std::string> texts_;  // decoded array data
};

}  // namespace

std::unique_ptr<Checkpoint> parse_mano_pickle(std::span<const std::byte> bytes, const std::string& name) {
  return std::make_unique<ManoPickle>(bytes, name);
}

std::unique_ptr<Checkpoint> open_mano_pickle(const std::string& path) {
  const MappedFile file = MappedFile::open(path);
  return parse_mano_pickle(file.bytes(), path);
}

}  // namespace sinew
