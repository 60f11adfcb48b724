"""Small rewrites between verification and emission."""

from __future__ import annotations

from pto_text import kernel, tile

from ptoas_bridge import assemble

COL = tile(32, 1, blayout="col_major")
DYN = tile(32, 1, blayout="col_major", valid="?x?")


def test_move_onto_the_same_bytes_is_dropped():
    def moved(address: str) -> str:
        t = tile()
        return assemble(
            kernel(f"""\
  %a = pto.alloc_tile addr = %a0 : {t}
  %b = pto.alloc_tile addr = {address} : {t}
  pto.tmov ins(%a : {t}) outs(%b : {t})
  pto.tabs ins(%b : {t}) outs(%b : {t})""")
        )

    assert "TMOV(" not in moved("%a0")
    assert "TMOV(" in moved("%a1")


def test_move_between_other_layouts_stays():
    wide, tall = tile(32, 64), tile(64, 32)
    cpp = assemble(
        kernel(f"""\
  %a = pto.alloc_tile addr = %a0 : {wide}
  %v = pto.treshape %a : {wide} -> {tall}
  %b = pto.alloc_tile addr = %a0 : {tall}
  pto.tmov ins(%v : {tall}) outs(%b : {tall})
  %c = pto.alloc_tile addr = %a0 : {tile(64, 32, pad=1)}
  pto.tfillpad ins(%b : {tall}) outs(%c : {tile(64, 32, pad=1)})""")
    )
    assert "TMOV(" not in cpp
    assert "TFILLPAD<pto::TFillPadMode::InPlace>(" in cpp


def test_column_move_runs_on_rows_on_a5():
    text = kernel(f"""\
  %a = pto.alloc_tile addr = %a0 valid_row = %c32 valid_col = %c1 : {DYN}
  %b = pto.alloc_tile addr = %a1 valid_row = %c32 valid_col = %c1 : {DYN}
  pto.tmov ins(%a : {DYN}) outs(%b : {DYN})""")
    cpp = assemble(text, arch="a5")
    assert cpp.count("TRESHAPE(") == 2
    assert "Tile<TileType::Vec, float, 1, 32, BLayout::RowMajor, -1, -1," in cpp
    assert ".GetValidCol(), v" in cpp
    assert "TRESHAPE(" not in assemble(text, arch="a3")


def test_static_column_move_on_a5():
    cpp = assemble(
        kernel(f"""\
  %a = pto.alloc_tile addr = %a0 : {COL}
  %b = pto.alloc_tile addr = %a1 : {COL}
  pto.tmov ins(%a : {COL}) outs(%b : {COL})"""),
        arch="a5",
    )
    assert "Tile<TileType::Vec, float, 1, 32, BLayout::RowMajor, 1, 32," in cpp
