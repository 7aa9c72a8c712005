// The rows of the table of instructions, one group after another.
//
// A pattern reads like the PTX manual: words must be there, words in [ ] may, and a word in
// capitals is a class, one of the words that kClasses lists.
//
// In the code
//   $T, $CMP     the word that a class stands for; for an optional class that is absent its default
//   $sat         true or false: whether the optional word is there
//   $1           operand 1, read as the type that the instruction ends with
//   $1:u32 $1:S  operand 1, read as that type
//   $1:address   the address in [ ];  $1:label  a label;  $1:lvalue, $1:bits  the register itself
//   $1:zero      nothing; the operand must be the literal 0;  $1:unused  nothing
//   $1{}         all elements of the vector operand 1, separated by commas
//   $0 = x       sets the register; small integers are widened by their sign
//   $0[] and #   a statement with [] is repeated for each element; # counts them
// Everything else is C++ against ptx_runtime.h, where the functions are described; `frame`, `carry`
// and `ignored` are variables of every function.
#pragma once

#include <array>
#include <string_view>

namespace cusim::ptx {

struct Class {
  std::string_view name;
  std::string_view fallback;  // what an absent optional class stands for
  std::string_view words;
};

struct Rule {
  std::string_view pattern;
  std::string_view code;
};

inline constexpr std::array kClasses{
    Class{"I", "", "u16 s16 u32 s32 u64 s64"},
    Class{"B", "", "b16 b32 b64"},
    Class{"F", "", "f32 f64"},
    Class{"T", "", "b8 u8 s8 b16 u16 s16 b32 u32 s32 b64 u64 s64 f32 f64"},
    Class{"D", "", "u8 s8 b16 u16 s16 b32 u32 s32 b64 u64 s64 f16 bf16 f32 f64"},
    Class{"S", "", "u8 s8 b16 u16 s16 b32 u32 s32 b64 u64 s64 f16 bf16 f32 f64"},
    Class{"HALVES", "", "f16x2 bf16x2"},
    Class{"ROUND", "rn", "rn rz rm rp"},
    Class{"CONVERT", "rn", "rn rz rm rp rni rzi rmi rpi"},
    Class{"DIVISION", "", "rn full approx"},
    Class{"EXACT", "", "rn approx"},
    Class{"CMP", "", "eq ne lt le gt ge lo ls hi hs equ neu ltu leu gtu geu num nan"},
    Class{"LOGIC", "", "and or xor"},
    Class{"SIDE", "", "l r"},
    Class{"EXCESS", "", "clamp wrap"},
    Class{"KIND", "", "finite infinite number notanumber normal subnormal"},
    Class{"SPACE", "generic",
          "global shared shared::cta local const param param::entry param::func"},
    Class{"ATOMIC", "", "volatile relaxed acquire release"},
    Class{"ORDER", "", "relaxed acquire release acq_rel sc"},
    Class{"SCOPE", "", "cta cluster gpu sys"},
    Class{"LEVEL", "", "cta gl sys"},
    Class{"L1", "",
          "ca cg cs lu cv wb wt L1::evict_normal L1::evict_unchanged L1::evict_first "
          "L1::evict_last L1::no_allocate"},
    Class{"L2", "", "L2::64B L2::128B L2::256B"},
    Class{"VECTOR", "v1", "v2 v4 v8"},
    Class{"UPDATE", "", "add min max and or xor exch inc dec"},
    Class{"REDUCTION", "", "add min max and or xor"},
    Class{"LANES", "", "up down bfly idx"},
    Class{"VOTE", "", "any all"},
};

inline constexpr Rule kArithmetic[] = {
    {"add.I", "$0 = add($1, $2)"},
    {"add[.rn].f64", "$0 = add<round_rn>($1, $2)"},
    {"add[.ROUND][.ftz][.sat].f32", "$0 = saturate<$sat>(add<round_$ROUND>($1, $2))"},
    {"sub.I", "$0 = subtract($1, $2)"},
    {"sub[.rn].f64", "$0 = add<round_rn>($1, -$2)"},
    {"sub[.ROUND][.ftz][.sat].f32", "$0 = saturate<$sat>(add<round_$ROUND>($1, -$2))"},
    {"mul.lo.I", "$0 = multiply_low($1, $2)"},
    {"mul.hi.I", "$0 = multiply_high($1, $2)"},
    {"mul.wide.I", "$0 = multiply_wide($1, $2)"},
    {"mul[.rn].f64", "$0 = multiply<round_rn>($1, $2)"},
    {"mul[.ROUND][.ftz][.sat].f32", "$0 = saturate<$sat>(multiply<round_$ROUND>($1, $2))"},
    {"mad.lo.I", "$0 = add(multiply_low($1, $2), $3)"},
    {"mad.hi.I", "$0 = add(multiply_high($1, $2), $3)"},
    {"mad.wide.I", "$0 = multiply_wide_add($1, $2, $3:bits)"},
    {"mad.rn.f64", "$0 = fused<round_rn>($1, $2, $3)"},
    {"mad[.ROUND][.ftz][.sat].f32", "$0 = saturate<$sat>(fused<round_$ROUND>($1, $2, $3))"},
    {"fma.rn.f64", "$0 = fused<round_rn>($1, $2, $3)"},
    {"fma.ROUND[.ftz][.sat].f32", "$0 = saturate<$sat>(fused<round_$ROUND>($1, $2, $3))"},
    {"div.I", "$0 = divide($1, $2)"},
    {"rem.I", "$0 = remainder($1, $2)"},
    {"div.DIVISION[.ftz].f32", "$0 = $1 / $2"},
    {"div.rn.f64", "$0 = $1 / $2"},
    {"add.cc.I", "$0 = add_carry<true>($1, $2, false, carry)"},
    {"addc[.cc].I", "$0 = add_carry<$cc>($1, $2, carry, carry)"},
    {"sub.cc.I", "$0 = subtract_borrow<true>($1, $2, false, carry)"},
    {"subc[.cc].I", "$0 = subtract_borrow<$cc>($1, $2, carry, carry)"},
    {"mad.lo.cc.I", "$0 = add_carry<true>(multiply_low($1, $2), $3, false, carry)"},
    {"mad.hi.cc.I", "$0 = add_carry<true>(multiply_high($1, $2), $3, false, carry)"},
    {"madc.lo[.cc].I", "$0 = add_carry<$cc>(multiply_low($1, $2), $3, carry, carry)"},
    {"madc.hi[.cc].I", "$0 = add_carry<$cc>(multiply_high($1, $2), $3, carry, carry)"},
    {"abs.I", "$0 = absolute($1)"},
    {"abs[.ftz].F", "$0 = std::abs($1)"},
    {"neg.I", "$0 = negate($1)"},
    {"neg[.ftz].F", "$0 = -$1"},
    {"min.I", "$0 = std::min($1, $2)"},
    {"max.I", "$0 = std::max($1, $2)"},
    {"min[.ftz][.NaN].F", "$0 = minimum<$NaN>($1, $2)"},
    {"max[.ftz][.NaN].F", "$0 = maximum<$NaN>($1, $2)"},
    {"rcp.EXACT[.ftz].F", "$0 = 1 / $1"},
    {"sqrt.EXACT[.ftz].F", "$0 = std::sqrt($1)"},
    {"rsqrt.approx[.ftz].F", "$0 = inverse_sqrt($1)"},
    {"sin.approx[.ftz].f32", "$0 = std::sin($1)"},
    {"cos.approx[.ftz].f32", "$0 = std::cos($1)"},
    {"lg2.approx[.ftz].f32", "$0 = std::log2($1)"},
    {"ex2.approx[.ftz].f32", "$0 = std::exp2($1)"},
    {"tanh.approx.f32", "$0 = std::tanh($1)"},
    {"copysign.F", "$0 = std::copysign($2, $1)"},
    {"testp.KIND.F", "$0 = is_$KIND($1)"},
};

inline constexpr Rule kBits[] = {
    {"and.B", "$0 = op_and{}($1, $2)"},
    {"or.B", "$0 = op_or{}($1, $2)"},
    {"xor.B", "$0 = op_xor{}($1, $2)"},
    {"not.B", "$0 = complement($1)"},
    {"and.pred", "$0 = op_and{}($1, $2)"},
    {"or.pred", "$0 = op_or{}($1, $2)"},
    {"xor.pred", "$0 = op_xor{}($1, $2)"},
    {"not.pred", "$0 = !$1"},
    {"cnot.B", "$0 = logical_not($1)"},
    {"shl.B", "$0 = shift_left($1, $2:u32)"},
    {"shr.B", "$0 = shift_right($1, $2:u32)"},
    {"shr.I", "$0 = shift_right($1, $2:u32)"},
    {"shf.SIDE.EXCESS.b32", "$0 = funnel_shift_$SIDE($1, $2, shift_$EXCESS($3:u32))"},
    {"lop3.b32", "$0 = any_logic($1, $2, $3, $4:u32)"},
    {"prmt.b32", "$0 = permute_bytes($1, $2, $3)"},
    {"popc.B", "$0 = count_ones($1)"},
    {"clz.B", "$0 = count_leading_zeros($1)"},
    {"brev.B", "$0 = reverse_bits($1)"},
    {"bfind[.shiftamt].I", "$0 = find_high_bit<$shiftamt>($1)"},
    {"bfe.I", "$0 = extract_bits($1, $2:u32, $3:u32)"},
    {"bfi.B", "$0 = insert_bits($1, $2, $3:u32, $4:u32)"},
};

inline constexpr Rule kSelection[] = {
    {"setp.CMP[.ftz].T", "$0 = cmp_$CMP($1, $2)"},
    {"setp.CMP[.ftz].T", "$0 = cmp_$CMP($2, $3); $1 = !cmp_$CMP($2, $3)"},
    {"setp.CMP.LOGIC[.ftz].T", "$0 = op_$LOGIC{}(cmp_$CMP($1, $2), $3:pred)"},
    {"set.CMP[.ftz].D.T", "$0 = true_value<$D>(cmp_$CMP($1, $2))"},
    {"selp.T", "$0 = $3:pred ? $1 : $2"},
    {"slct[.ftz].T.S", "$0 = $3 >= 0 ? $1:T : $2:T"},
    {"mov.T", "$0 = $1"},
    {"mov.pred", "$0 = $1"},
    {"pack.T", "$0 = pack<$T>($1{})"},
    {"unpack.T", "unpack($1, #, $0[]:lvalue)"},
    {"cvt[.CONVERT][.ftz][.sat].D.S", "$0 = convert<$D, round_$CONVERT, $sat>($1)"},
    {"cvt.rn.HALVES.f32", "$0 = pack<b32>(to_half_of($HALVES{}, $2), to_half_of($HALVES{}, $1))"},
    {"cvt.rna.tf32.f32", "$0 = to_tf32($1)"},
    {"cvta.SPACE.u64", "$0 = to_generic<space_$SPACE>(frame, $1)"},
    {"cvta.to.SPACE.u64", "$0 = from_generic<space_$SPACE>(frame, $1)"},
    {"isspacep.SPACE", "$0 = is_in<space_$SPACE>(frame, $1:u64)"},
};

inline constexpr Rule kMemory[] = {
    {"ld[.weak][.SPACE][.nc][.L1][.L2][.VECTOR].T",
     "const auto from = access<space_$SPACE, $T, $VECTOR>(frame, $1:address); "
     "$0[] = load_plain(from + #)"},
    {"ld.ATOMIC[.SCOPE][.SPACE][.L1][.L2][.VECTOR].T",
     "const auto from = access<space_$SPACE, $T, $VECTOR>(frame, $1:address); "
     "$0[] = load_atomic(from + #)"},
    {"st[.weak][.SPACE][.L1][.L2][.VECTOR].T",
     "const auto to = access<space_$SPACE, $T, $VECTOR>(frame, $0:address); "
     "store_plain(to + #, $1[])"},
    {"st.ATOMIC[.SCOPE][.SPACE][.L1][.L2][.VECTOR].T",
     "const auto to = access<space_$SPACE, $T, $VECTOR>(frame, $0:address); "
     "store_atomic(to + #, $1[])"},
    {"atom[.ORDER][.SCOPE][.SPACE].UPDATE.T",
     "$0 = update<op_$UPDATE>(access<space_$SPACE, $T, v1>(frame, $1:address), $2)"},
    {"atom[.ORDER][.SCOPE][.SPACE].cas.T",
     "$0 = compare_and_swap(access<space_$SPACE, $T, v1>(frame, $1:address), $2, $3)"},
    {"red[.ORDER][.SCOPE][.SPACE].REDUCTION.T",
     "update<op_$REDUCTION>(access<space_$SPACE, $T, v1>(frame, $0:address), $1)"},
    {"red[.ORDER][.SCOPE][.SPACE].UPDATE.T",
     "update<op_$UPDATE>(access<space_$SPACE, $T, v1>(frame, $0:address), $1)"},
    {"cp.async.L1.shared.global[.L2]", "copy_async<$2:bits>(frame, $0:address, $1:address)"},
    {"cp.async.commit_group", ""},
    {"cp.async.wait_group", "$0:unused"},
    {"cp.async.wait_all", ""},
    {"membar.LEVEL", "fence()"},
    {"fence.ORDER.SCOPE", "fence()"},
};

inline constexpr Rule kThreads[] = {
    {"bra[.uni]", "goto $0:label"},
    {"ret[.uni]", "return"},
    {"trap", "trap(frame)"},
    {"bar.sync", "$0:zero; frame.block.barrier()"},
    {"barrier.sync[.aligned]", "$0:zero; frame.block.barrier()"},
    {"bar.red.popc.u32", "$1:zero; $0 = frame.block.barrier($2:pred)"},
    {"bar.red.or.pred", "$1:zero; $0 = frame.block.barrier($2) != 0"},
    {"bar.red.and.pred", "$1:zero; $0 = frame.block.barrier(!$2) == 0"},
    {"bar.warp.sync", "warp_sync(frame, $0:u32)"},
    {"shfl.sync.LANES.b32", "$0 = shuffle_$LANES(frame, $1, $2, $3, $4, ignored)"},
    {"shfl.sync.LANES.b32", "$0 = shuffle_$LANES(frame, $2, $3, $4, $5, $1:lvalue)"},
    {"vote.sync.VOTE.pred", "$0 = vote_$VOTE(frame, $1, $2:u32)"},
    {"vote.sync.ballot.b32", "$0 = ballot(frame, $1:pred, $2)"},
    {"match.any.sync.B", "$0 = match_any(frame, $1, $2:u32)"},
    {"match.all.sync.B", "$0 = match_all(frame, $1, $2:u32, ignored)"},
    {"match.all.sync.B", "$0 = match_all(frame, $2, $3:u32, $1:lvalue)"},
    {"redux.sync.REDUCTION.T", "$0 = warp_reduce<op_$REDUCTION>(frame, $1, $2:u32)"},
    {"activemask.b32", "$0 = 1u << frame.thread.lane"},
    {"griddepcontrol.wait", ""},
    {"griddepcontrol.launch_dependents", ""},
    {"nanosleep.u32", "$0:unused"},
};

}  // namespace cusim::ptx
