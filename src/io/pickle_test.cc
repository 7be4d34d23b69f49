#include "io/pickle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/test_paths.h"
#include "io/bytes.h"
#include "io/mapped_file.h"
#include "io/safetensors.h"
#include "io/test_damage.h"
#include "io/test_zip.h"

namespace sinew::pickle {
namespace {

using ::testing::HasSubstr;

bool admit_all(std::string_view) { return true; }
bool admit_safe(std::string_view global) { return !is_dangerous_global(global); }

/// Makes strings with NULs easy to write: P("...") keeps them.
template <std::size_t N>
std::string P(const char (&text)[N]) {
  return {text, N - 1};
}

template <typename T>
std::string le(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof(T)};
}

Document parse(std::string_view bytes, const Limits& limits = {}) {
  return Document::parse(bytes_of(bytes), "f.pkl", admit_all, limits);
}

std::string error_of(std::string_view bytes, GlobalPolicy policy = admit_all, const Limits& limits = {}) {
  try {
    Document::parse(bytes_of(bytes), "f.pkl", policy, limits);
  } catch (const Error& e) {
    return e.what();
  }
  return "accepted";
}

TEST(Pickle, ReadsEveryProtocolThatPythonWrites) {
  for (int protocol = 0; protocol <= 5; ++protocol) {
    SCOPED_TRACE(protocol);
    const MappedFile file = MappedFile::open(test_data(fmt::format("torch/values_p{}.pkl", protocol)));
    const Document document = Document::parse(file.bytes(), file.path(), admit_safe);
    const Ref root = document.root();
    ASSERT_EQ(root->kind, Kind::kDict);
    EXPECT_EQ(root->find("absent"), nullptr);
    EXPECT_EQ(root->find("none")->kind, Kind::kNone);
    EXPECT_TRUE(root->find("bools")->items.at(0)->boolean);
    EXPECT_EQ(root->find("bools")->items.at(1)->kind, Kind::kBool);
    EXPECT_FALSE(root->find("bools")->items.at(1)->boolean);
    const auto& ints = root->find("ints")->items;
    ASSERT_EQ(ints.size(), 9U);
    const std::int64_t expected[] = {0, 255, 256, 65536, -1, std::int64_t{1} << 31, INT64_MIN};
    for (std::size_t i = 0; i < 7; ++i) {
      EXPECT_EQ(ints[i]->kind, Kind::kInt);
      EXPECT_EQ(ints[i]->integer, expected[i]);
    }
    EXPECT_EQ(ints[7]->kind, Kind::kBigInt);
    EXPECT_EQ(ints[7]->text, std::string(8, '\0') + '\x40');           // 2^70
    EXPECT_EQ(ints[8]->text, std::string(7, '\xff') + P("\x7f\xff"));  // -2^63 - 1
    EXPECT_EQ(root->find("float")->real, -1.5e-3);
    EXPECT_EQ(root->find("text")->text, "h\u00e4nd \\ \U0001f44b\n");
    EXPECT_EQ(root->find("text")->kind, Kind::kString);
    if (protocol >= 3) {  // before, bytes are a call of _codecs.encode
      EXPECT_EQ(root->find("bytes")->kind, Kind::kBytes);
      EXPECT_EQ(root->find("bytes")->text, P("\x00\xff'\""));
    } else {
      EXPECT_TRUE(root->find("bytes")->is_call_of("_codecs.encode"));
    }
    EXPECT_EQ(root->find("empty")->items.size(), 3U);
    EXPECT_EQ(root->find("shared")->items[0], root->find("shared")->items[1]) << "shared, not copied";
    EXPECT_EQ(root->find("nested"), root->find("shared")->items[0]);
    const Ref ordered = root->find("ordered");
    EXPECT_TRUE(ordered->is_call_of("collections.OrderedDict"));
    EXPECT_EQ(ordered->find("a")->integer, 1);
  }
}

TEST(Pickle, ReadsPython2Text) {
  const std::string file = P(
      "(S'a\\x41\\n\\'\\101'\nS\"q\"\nU\x02hiT\x01\0\0\0zVh\\u00e4\xe4\\U0001f44b\nI01\nI-7\nL12L\nF1e3\nt.");
  const Document document = parse(file);
  const auto& items = document.root()->items;
  ASSERT_EQ(items.size(), 9U);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(items[i]->kind, Kind::kBytes);
  EXPECT_EQ(items[0]->text, "aA\n'A");
  EXPECT_EQ(items[1]->text, "q");
  EXPECT_TRUE(items[2]->is_text("hi"));
  EXPECT_EQ(items[3]->text, "z");
  EXPECT_EQ(items[4]->text, "h\u00e4\u00e4\U0001f44b");
  EXPECT_EQ(items[5]->kind, Kind::kBool);
  EXPECT_EQ(items[6]->integer, -7);
  EXPECT_EQ(items[7]->integer, 12);
  EXPECT_EQ(items[8]->real, 1000);
}

TEST(Pickle, RecordsCallsWithoutMakingThem) {
  const Document document =
      parse(P("\x80\x02"
              "cos\nsystem\nX\x04\0\0\0true\x85R}X\x01\0\0\0kK\x05sb."));
  const Ref root = document.root();
  EXPECT_TRUE(root->is_call_of("os.system"));
  EXPECT_EQ(root->callable->offset, 2U);
  EXPECT_EQ(root->arguments->items.at(0)->text, "true");
  EXPECT_EQ(root->state->find("k")->integer, 5);
  // Python-2 class instances.
  EXPECT_TRUE(parse("(I1\nimod\nClass\n.").root()->is_call_of("mod.Class"));
  EXPECT_TRUE(parse("(cmod\nClass\nI1\no.").root()->is_call_of("mod.Class"));
  EXPECT_TRUE(parse(P("\x80\x04\x8c\x03mod\x8c\x05"
                      "Class\x93)\x81."))
                  .root()
                  ->is_call_of("mod.Class"));
  EXPECT_EQ(parse("Pan id\n.").root()->items.at(0)->text, "an id");
}

// Row 3.
TEST(Pickle, NamesTheGlobalItRefuses) {
  EXPECT_THAT(error_of("cos\nsystem\n(S'id'\ntR.", admit_safe),
              HasSubstr("f.pkl: pickle byte 0: the global 'os.system' is refused"));
  for (const char* name : {"os.system",
                           "posix.system",
                           "nt.system",
                           "subprocess.Popen",
                           "builtins.eval",
                           "__builtin__.eval",
                           "builtins.exec",
                           "builtins.__import__",
                           "builtins.getattr",
                           "builtins.open",
                           "builtins.compile",
                           "builtins.breakpoint",
                           "importlib.import_module",
                           "runpy._run_code",
                           "sys.modules",
                           "socket.socket",
                           "shutil.rmtree",
                           "pty.spawn",
                           "webbrowser.open",
                           "ctypes.CDLL",
                           "operator.attrgetter",
                           "builtins.getattr.x",
                           "torch.hub.load",
                           "pickle.loads",
                           "types.CodeType",
                           "io.open"}) {
    EXPECT_TRUE(is_dangerous_global(name)) << name;
  }
  for (const char* name :
       {"collections.OrderedDict", "torch.FloatStorage", "osgeo.x", "builtins.set", "pathlib.PosixPath",
        "io.BytesIO", "types.SimpleNamespace", "yacs.config.CfgNode", "code.models.Net", "sysx.y"}) {
    EXPECT_FALSE(is_dangerous_global(name)) << name;
  }
}

TEST(Pickle, RefusesUnknownOpcodes) {
  std::set<int> known;
  for (const char c : std::string("()0123.BCFGIJKLMNPQRSTUVX]abcdeghijloprqstu}"))
    known.insert(static_cast<unsigned char>(c));
  for (const int c : {0x80, 0x81, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x8b, 0x8c, 0x8d, 0x8e, 0x8f, 0x90,
                      0x91, 0x93, 0x94, 0x95, 0x96}) {
    known.insert(c);
  }
  known.erase('3');
  for (int opcode = 0; opcode < 256; ++opcode) {
    const std::string text = error_of(std::string("N0") + static_cast<char>(opcode));
    const std::string refusal =
        fmt::format("pickle byte 2: opcode 0x{:02x} is not on the allow-list", opcode);
    EXPECT_EQ(text.find(refusal) != std::string::npos, !known.contains(opcode)) << opcode << " " << text;
  }
}

TEST(Pickle, RefusesMalformedStacks) {
  // clang-format off
  for (const std::string& bytes : {
        P(""), P("."), P("NN."), P("(N."), P("N(."), P("0."), P("a."), P("]a."), P("K\x01K\x02s."),
        P("]e."), P("](K\x01u."), P("}(K\x01u."), P("}K\x01s."), P("t."), P("\x85."), P("N(\x85."),
        P("N(K\x01\x86."), P("R."), P("NNR."), P("ca\nb\nNR."), P("Nb."), P("NNb."), P("q\x00."),
        P("(q\x00."), P("h\x00."), P("2."), P("Q."), P("\x93."), P("NN\x93."), P("\x81."), P("o."),
        P("(o."), P("ia\nb\n."), P("N.N"), P("\x80\x06N."), P("(dN."), P("(Nd."), P("\x8f(N\x65."),
        P("](N\x90."), P("ca\nb\n)RNbNb.")}) {
    // clang-format on
    EXPECT_NE(error_of(bytes), "accepted") << quoted(bytes);
  }
}

TEST(Pickle, RefusesMalformedText) {
  // clang-format off
  for (const std::string& bytes : {
        P("ca\n\n."), P("c\nb\n."), P("ca\nb"), P("I1x\n."), P("Ix\n."), P("I\n."), P("L-L\n."),
        P("F1.0x\n."), P("Sabc\n."), P("S'\n."), P("S'a\\x4'\n."), P("S'\\q'\n."), P("V\\u12\n."),
        P("V\\U00110000\n."), P("gx\n."), P("g-1\n."), P("p\n."), P("X\x02\0\0\0\xc3("),
        P("X\x01\0\0\0\xff.")}) {
    // clang-format on
    EXPECT_NE(error_of(bytes), "accepted") << quoted(bytes);
  }
}

// Rows 6 and 10: a declared length is compared with what is left before anything is taken.
TEST(Pickle, BoundsDeclaredLengths) {
  for (const std::string& bytes :
       {P("X\xff\xff\xff\xff"), P("T\xff\xff\xff\x7f"), P("T\xff\xff\xff\xff"), P("B\xff\xff\xff\xff"),
        P("\x8b\xff\xff\xff\x7f"), P("\x8b\xff\xff\xff\xff"), P("\x8d\xff\xff\xff\xff\xff\xff\xff\xff"),
        P("\x8e\xff\xff\xff\xff\xff\xff\xff\x7f"), P("\x96\0\0\0\0\0\x01\0\0"), P("U\xff"), P("\x8a\xff"),
        P("\x8c\xff"), P("C\xff")}) {
    EXPECT_THAT(error_of(bytes + "x"), HasSubstr("and 1 are left")) << quoted(bytes);
  }
  EXPECT_THAT(error_of(P("\x95\xff\0\0\0\0\0\0\0N.")), HasSubstr("a frame of 255 bytes"));
  EXPECT_THAT(error_of("Nr\xff\xff\xff\xff."), HasSubstr("memo key 4294967295 is out of bounds"));
  EXPECT_THAT(error_of("Np18446744073709551615\n."), HasSubstr("memo key"));
  EXPECT_THAT(error_of("L" + std::string(101, '9') + "L\n."), HasSubstr("101 digits"));
  EXPECT_EQ(error_of("L" + std::string(100, '9') + "L\n."), "accepted");

  Limits small;
  small.max_nodes = 100;
  EXPECT_THAT(error_of("(" + std::string(101, ']') + "l.", admit_all, small),
              HasSubstr("more than 100 values"));
  EXPECT_THAT(error_of("(" + std::string(101, 'N') + "l.", admit_all, small),
              HasSubstr("more than 100 values"));
  small.max_text = 3;
  EXPECT_THAT(error_of(P("U\x04"
                         "abcd."),
                       admit_all, small),
              HasSubstr("the bound is 3"));
  small.max_bytes = 3;
  EXPECT_THAT(error_of("(NNl.", admit_all, small), HasSubstr("the bound is 3"));
}

// Row 7.
TEST(Pickle, BoundsDepthWithoutRecursion) {
  constexpr int kDepth = 1'000'000;
  Limits limits;
  limits.max_nodes = 10 * kDepth;
  const auto tuples = [](int depth) { return "N" + std::string(depth, '\x85') + "."; };
  EXPECT_THAT(error_of(tuples(kDepth), admit_all, limits), HasSubstr("nested more than 1000 deep"));
  EXPECT_THAT(error_of(std::string(kDepth, ']') + std::string(kDepth - 1, 'a') + ".", admit_all, limits),
              HasSubstr("nested more than 1000"));
  EXPECT_THAT(error_of(std::string(kDepth, '(') + std::string(kDepth, 't') + ".", admit_all, limits),
              HasSubstr("nested more than 1000"));
  EXPECT_EQ(error_of(tuples(999)), "accepted");
  EXPECT_NE(error_of(tuples(1000)), "accepted");
  // Deep values that were thrown away are still destroyed without recursion.
  EXPECT_EQ(error_of("N" + std::string(kDepth, '\x85') + "0N.", admit_all, limits), "accepted");
  // A long way found after a short one counts too.
  std::string late = "(N";
  for (int i = 0; i < 600; ++i) late += '\x85';
  late += P("q\x00h\x00");
  for (int i = 0; i < 600; ++i) late += '\x85';
  EXPECT_NE(error_of(late + "l."), "accepted");
}

TEST(Pickle, LoopsAndSharedNodesAreHarmless) {
  const auto count = [](const Document& document) {
    int nodes = 0;
    document.visit(document.root(), [&](const Value&) { ++nodes; });
    return nodes;
  };
  const Document list =
      parse(P("]q\x00h\x00"
              "a."));
  EXPECT_EQ(list.root()->items.at(0), list.root());
  EXPECT_EQ(count(list), 1);
  const Document dict = parse(P("}q\x00X\x01\0\0\0ah\x00s."));
  EXPECT_EQ(dict.root()->find("a"), dict.root());
  EXPECT_EQ(count(dict), 2);
  const Document object =
      parse(P("ca\nb\n)Rq\x00h\x00"
              "b."));
  EXPECT_EQ(object.root()->state, object.root());
  const Document through_tuple =
      parse(P("]q\x00h\x00\x85"
              "a."));
  EXPECT_EQ(through_tuple.root()->items.at(0)->items.at(0), through_tuple.root());

  // "A billion laughs": 2^500 paths, 501 nodes.
  std::string laughs = "N";
  for (int i = 0; i < 500; ++i) laughs += "2\x86";
  EXPECT_EQ(count(parse(laughs + ".")), 501);
}

TEST(Pickle, RequireGlobalsSeesEverythingReachable) {
  const Document document = parse(P("}(X\x01\0\0\0aca\nb\nX\x01\0\0\0b]cc\nd\n)R}cx\ny\nNsbau."));
  const auto refuses = [&](Ref from, GlobalPolicy policy) -> std::string {
    try {
      document.require_globals(from, policy, "the test");
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  const Ref root = document.root();
  EXPECT_EQ(refuses(root, admit_all), "");
  EXPECT_THAT(refuses(root, [](std::string_view g) { return g != "x.y"; }),
              HasSubstr("pickle byte 28: the global 'x.y' is not on the allow-list of the test"));
  EXPECT_EQ(refuses(root->find("b"), [](std::string_view g) { return g != "a.b"; }), "");
}

TEST(Pickle, SurvivesDamage) {
  for (const char* name : {"values_p0.pkl", "values_p2.pkl", "values_p4.pkl"}) {
    const MappedFile file = MappedFile::open(test_data(std::string("torch/") + name));
    const auto parse_it = [](std::span<const std::byte> bytes) {
      Limits limits;
      limits.max_nodes = 10'000;
      const Document document = Document::parse(bytes, "f.pkl", admit_safe, limits);
      document.visit(document.root(), [](const Value&) {});
    };
    const std::string contents(as_text(file.bytes()));
    expect_truncations_refused(contents, parse_it);
    survive_flips(contents, parse_it, 5000);
  }
}

/// The bytes of a numpy array: BUILD state (version, shape, dtype, fortran, data).
std::string_view array_bytes(Ref array) { return array->state->items.at(4)->text; }

TEST(Pickle, ReadsTheSyntheticMano) {
  const auto path = shared_file("golden/hamer/MANO_SYNTH_RIGHT.pkl");
  const auto twin_path = shared_file("golden/hamer/mano_synthetic.safetensors");
  if (!path || !twin_path) GTEST_SKIP() << kNoShared;
  const MappedFile file = MappedFile::open(*path);
  const Document document = Document::parse(file.bytes(), *path, admit_safe);
  const Ref root = document.root();
  const auto expected = open_safetensors(*twin_path);

  for (const char* name : {"v_template", "posedirs", "weights", "hands_mean"}) {
    const Ref array = root->find(name);
    ASSERT_NE(array, nullptr) << name;
    ASSERT_TRUE(array->is_call_of("numpy.core.multiarray._reconstruct")) << name;
    const std::string_view data = array_bytes(array);
    const TensorView& twin = expected->get(name);
    ASSERT_EQ(data.size(), static_cast<std::size_t>(twin.shape.count()) * sizeof(double)) << name;
    int wrong = 0;
    for (std::int64_t i = 0; i < twin.shape.count(); ++i) {
      double value = 0;
      std::memcpy(&value, data.data() + i * 8, 8);
      wrong += value != element(twin, i);
    }
    EXPECT_EQ(wrong, 0) << name;
  }
  const Ref shapedirs = root->find("shapedirs");
  EXPECT_TRUE(shapedirs->is_call_of("chumpy.reordering.Select"));
  EXPECT_TRUE(shapedirs->state->find("a")->is_call_of("chumpy.ch.Ch"));
  EXPECT_EQ(array_bytes(shapedirs->state->find("a")->state->find("x")).size(), 778U * 3 * 20 * 8);
  EXPECT_TRUE(root->find("J_regressor")->is_call_of("copy_reg._reconstructor"));
  EXPECT_TRUE(root->find("bs_style")->is_text("lbs"));

  expect_truncations_refused(
      std::string(as_text(file.bytes())), [&](auto bytes) { Document::parse(bytes, *path, admit_safe); },
      40960);
}

}  // namespace
}  // namespace sinew::pickle
