import pytest

import generate_reference

SOURCES = {
    "src/ir/kinds.def": "// kinds\nX(Add, Expr)\nX(Div, Expr)\nX(Block, Stmt, kSparse, kScheduled)\n",
    "src/ir/expr.h": """
#define TW_BINARY(Name)                       \\
  struct Name {                               \\
    Expr a, b;                                \\
    using Members = Fields<&Name::a, &Name::b>; \\
  };
TW_BINARY(Add)
TW_BINARY(Div)  ///< truncating for integers
/// The unit of scheduling:
/// an isolated computation.
struct Block {
  std::vector<Ref<IterVar>> iter_vars;  ///< scope: the whole block
  ForKind kind = ForKind::kSerial;
  using Members = Fields<&Block::kind,
                         &Block::iter_vars>;
};
""",
    "src/ir/intrinsics.def": "FLOATS(exp, 1, kNever, kFunction, std::pow(e, a))\n"
    "X(call_extern, -1, kUpdateState, kExplicit, kDtypeFirst, kNever, CODE)\n",
    "src/schedule/instructions.def": "X(Split, split)\n",
    "src/schedule/primitives/split.h": """
struct Split {
  LoopRV loop;
  using Members = Fields<&Split::loop>;
  static constexpr std::string_view kDoc = R"(Split a loop.

Args:
    loop: the loop.)";
};
""",
    "src/schedule/primitives/split.cc": """// Split one loop.
//
//   Before   After
//
// Requires  P1 serial
#include <a>
auto d = refuse("split/P1");
""",
    "src/lower/memory/flatten.cc": "// Before ...\n// Placement: last\nint f();\n",
    "src/lower/blocks/lower_blocks.cc": "// Blocks become loops.\n",
    "src/lower/pipeline.cc": """
constexpr Row kRows[] = {
    {"lower_blocks", lower_blocks, kAll, kLowered, "after what needs blocks"},
    {"flatten", flatten, kMachines, kLowered,
     "buffers have "
     "their places"},
};
""",
}


@pytest.fixture
def catalogs(tree):
    return dict(generate_reference.generate(tree(SOURCES)))


def test_nodes_follow_the_field_list(catalogs):
    assert (
        "### Block\n\nThe unit of scheduling: an isolated computation.\n\nMay occur until lowered.\n"
        in catalogs["nodes.md"]
    )
    kind = catalogs["nodes.md"].index("| `kind` | `ForKind` |  |")
    assert kind < catalogs["nodes.md"].index("| `iter_vars` | `std::vector<Ref<IterVar>>` | scope: the whole block |")


def test_nodes_that_a_macro_writes(catalogs):
    assert "### Div\n\ntruncating for integers\n" in catalogs["nodes.md"]
    assert catalogs["nodes.md"].count("| `b` | `Expr` |  |") == 2


def test_a_kind_without_a_field_list_is_an_error(tree):
    root = tree(SOURCES | {"src/ir/kinds.def": "X(Gone, Expr)\n"})
    with pytest.raises(ValueError, match="names Gone"):
        generate_reference.nodes(root)


def test_intrinsics(catalogs):
    assert "| `tir.exp` | 1 | Pure | SameFloat | Function | `std::pow(e, a)` |" in catalogs["intrinsics.md"]
    assert "| `tir.call_extern` | any | UpdateState | Explicit |" in catalogs["intrinsics.md"]


def test_primitives_have_docstring_and_contract(catalogs):
    assert "## split\n\n```text\nSplit a loop.\n\nArgs:\n    loop: the loop.\n```\n" in catalogs["primitives.md"]
    assert "  Before   After\n\nRequires  P1 serial\n```" in catalogs["primitives.md"]


def test_passes_stand_in_the_order_of_the_pipeline(catalogs):
    assert (
        "## flatten\n\nWhy here: buffers have their places.\n\nTargets: machines. Leaves a lowered program.\n\n"
        "```text\nBefore ...\nPlacement: last\n```" in catalogs["passes.md"]
    )
    assert catalogs["passes.md"].index("## lower_blocks") < catalogs["passes.md"].index("## flatten")


def test_codes(catalogs):
    assert "| `split/P1` | `src/schedule/primitives/split.cc` |" in catalogs["codes.md"]


def test_catalogs_are_written_into_a_folder(tree, tmp_path):
    generate_reference.write(tree(SOURCES), tmp_path / "reference")
    assert {path.name for path in (tmp_path / "reference").iterdir()} == {*generate_reference.CATALOGS}
