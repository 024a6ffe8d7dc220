// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "CorpusMaker.h"

#include <fmt/format.h>

namespace mgpu::kernels::corpus {

void Maker::same(const std::string &family, const std::string &op, size_t count,
                 const std::string &type) {
  std::string list, lanes, vectors;
  for (size_t k = 0; k < count; ++k) {
    const char letter = char('a' + k);
    list += fmt::format("{}%{}", k ? ", " : "", letter);
    lanes += fmt::format("{}%v{}", k ? ", " : "", letter);
    vectors += fmt::format("%v{0} = vector.broadcast %{0} : {1} to "
                           "vector<4x{1}>\n",
                           letter, type);
  }
  add(family, Types(count, type), type,
      fmt::format("%r = {} {} : {}\n", op, list, type));
  // One vector of a function is like another, and takes long to compile.
  if (type != "index" && (!family.starts_with("math") || op == "math.exp"))
    add("vector_" + family, Types(count, type), type,
        fmt::format("{0}%w = {1} {2} : vector<4x{3}>\n"
                    "%r = vector.extract %w[1] : {3} from vector<4x{3}>\n",
                    vectors, op, lanes, type));
}

void Maker::convert(const std::string &op, const std::string &from,
                    const std::string &to) {
  add("convert", {from}, to,
      fmt::format("%r = arith.{} %a : {} to {}\n", op, from, to));
}

void Maker::makeIntegers(const std::string &type) {
  for (const char *op : {"addi", "subi", "muli", "andi", "ori", "xori", "maxsi",
                         "minsi", "maxui", "minui"})
    same("integer", std::string("arith.") + op, 2, type);
  for (const char *op : {"shli", "shrsi", "shrui"})
    same("shift", std::string("arith.") + op, 2, type);
  for (const char *op : {"divsi", "divui", "remsi", "remui", "floordivsi",
                         "ceildivsi", "ceildivui"})
    same("divide", std::string("arith.") + op, 2, type);
  for (const char *p :
       {"eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"})
    add("compare", {type, type}, type,
        fmt::format("%t = arith.cmpi {0}, %a, %b : {1}\n"
                    "%r = arith.select %t, %a, %b : {1}\n",
                    p, type));
  add("extended", {type, type}, type,
      fmt::format("%s, %over = arith.addui_extended %a, %b : {0}, i1\n"
                  "%r = arith.select %over, %s, %b : {0}\n",
                  type));
  for (const char *op : {"mulsi_extended", "mului_extended"}) {
    add("extended", {type, type}, type,
        fmt::format("%low, %high = arith.{0} %a, %b : {1}\n"
                    "%r = arith.subi %low, %high : {1}\n",
                    op, type));
    add("extended", {type, type}, type,
        fmt::format("%v = vector.from_elements %a, %b : vector<2x{1}>\n"
                    "%low, %high = arith.{0} %v, %v : vector<2x{1}>\n"
                    "%s = arith.subi %low, %high : vector<2x{1}>\n"
                    "%r = vector.extract %s[1] : {1} from vector<2x{1}>\n",
                    op, type));
  }
  for (const char *op : {"absi", "ctlz", "cttz", "ctpop"})
    same("bits", std::string("math.") + op, 1, type);
  same("power", "math.ipowi", 2, type);
}

/// The index dialect has the operations of integers under names of its own.
void Maker::makeIndices() {
  const Types two{"index", "index"};
  auto binary = [&](const std::string &family,
                    std::initializer_list<const char *> ops) {
    for (const char *op : ops)
      add(family, two, "index", fmt::format("%r = index.{} %a, %b\n", op));
  };
  binary("index_integer", {"add", "sub", "mul", "and", "or", "xor", "maxs",
                           "maxu", "mins", "minu"});
  binary("index_divide",
         {"divs", "divu", "rems", "remu", "floordivs", "ceildivs", "ceildivu"});
  binary("index_shift", {"shl", "shrs", "shru"});
  for (const char *p :
       {"eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"})
    add("index_compare", two, "index",
        fmt::format("%t = index.cmp {}(%a, %b)\n"
                    "%r = arith.select %t, %a, %b : index\n",
                    p));
  for (const char *op : {"casts", "castu"})
    for (const char *type : {"i8", "i32", "i64"}) {
      add("convert", {type}, "index",
          fmt::format("%r = index.{} %a : {} to index\n", op, type));
      add("convert", {"index"}, type,
          fmt::format("%r = index.{} %a : index to {}\n", op, type));
    }
  add("index_constant", two, "index",
      "%s = index.sizeof\n%k = index.constant 12345\n"
      "%t = index.bool.constant true\n%u = index.cmp slt(%a, %s)\n"
      "%v = arith.andi %t, %u : i1\n%r = arith.select %v, %k, %s : index\n");
  // Known ranges: these are computed in 32 bits.
  for (const char *op :
       {"addi", "subi", "muli", "andi", "ori", "xori", "maxsi", "minui", "shli",
        "shrui", "divui", "remsi", "ceildivui", "floordivsi"})
    add("index_narrow", {"index"}, "index",
        fmt::format("%t = gpu.thread_id x\n%c3 = arith.constant 3 : index\n"
                    "%n = arith.{} %t, %c3 : index\n"
                    "%r = arith.xori %a, %n : index\n",
                    op));
}

/// Operations on i1, of which -1 is the signed value of true.
void Maker::makeBits() {
  auto bits = [&](const std::string &body) {
    add("i1", {"i32", "i32"}, "i32",
        "%s = arith.cmpi slt, %a, %b : i32\n"
        "%t = arith.cmpi ult, %a, %b : i32\n"
        "%one = arith.constant true\n%zero = arith.constant false\n" +
            body + "%r = arith.extsi %u : i1 to i32\n");
  };
  for (const char *op : {"andi", "ori", "xori", "addi", "subi", "muli", "maxsi",
                         "minsi", "maxui", "minui"})
    bits(fmt::format("%u = arith.{} %s, %t : i1\n", op));
  for (const char *op : {"divsi", "divui", "remsi", "remui", "floordivsi",
                         "ceildivsi", "ceildivui"})
    bits(fmt::format("%u = arith.{} %s, %one : i1\n", op));
  for (const char *op : {"shli", "shrsi", "shrui"})
    bits(fmt::format("%u = arith.{} %s, %zero : i1\n", op));
  for (const char *op : {"absi", "ctlz", "cttz", "ctpop"})
    bits(fmt::format("%u = math.{} %s : i1\n", op));
  for (const char *p :
       {"eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"})
    bits(fmt::format("%u = arith.cmpi {}, %s, %t : i1\n", p));
  for (const char *op : {"mulsi_extended", "mului_extended"})
    bits(fmt::format("%v, %w = arith.{} %s, %t : i1\n"
                     "%u = arith.xori %v, %w : i1\n",
                     op));
  bits("%v, %w = arith.addui_extended %s, %t : i1, i1\n"
       "%u = arith.ori %v, %w : i1\n");
  for (const char *type : {"f32", "f64", "bf16"}) {
    bits(fmt::format("%f = arith.uitofp %s : i1 to {0}\n"
                     "%u = arith.fptoui %f : {0} to i1\n",
                     type));
    bits(fmt::format("%f = arith.sitofp %s : i1 to {0}\n"
                     "%u = arith.fptosi %f : {0} to i1\n",
                     type));
  }
}

void Maker::makeFloats(const std::string &type) {
  for (const char *op : {"addf", "subf", "mulf", "divf", "remf", "maximumf",
                         "minimumf", "maxnumf", "minnumf"})
    same("float", std::string("arith.") + op, 2, type);
  same("negate", "arith.negf", 1, type);
  for (const char *p :
       {"false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt",
        "uge", "ult", "ule", "une", "uno", "true"})
    add("compare", {type, type}, type,
        fmt::format("%t = arith.cmpf {0}, %a, %b : {1}\n"
                    "%r = arith.select %t, %a, %b : {1}\n",
                    p, type));
  for (const char *op :
       {"sqrt", "rsqrt", "cbrt",  "exp",   "exp2",      "expm1",
        "log",  "log2",  "log10", "log1p", "sin",       "cos",
        "tan",  "asin",  "acos",  "atan",  "sinh",      "cosh",
        "tanh", "asinh", "acosh", "atanh", "erf",       "erfc",
        "absf", "ceil",  "floor", "round", "roundeven", "trunc"})
    same("math", std::string("math.") + op, 1, type);
  for (const char *op : {"atan2", "powf", "copysign"})
    same("math2", std::string("math.") + op, 2, type);
  same("fma", "math.fma", 3, type);
  add("fpowi", {type, "i32"}, type,
      fmt::format("%r = math.fpowi %a, %b : {}, i32\n", type));
  add("clamp", {type, type, type}, type,
      fmt::format("%low = arith.minimumf %b, %c : {0}\n"
                  "%high = arith.maximumf %b, %c : {0}\n"
                  "%r = math.clampf %a to [%low, %high] : {0}\n",
                  type));
  add("sincos", {type}, type,
      fmt::format("%s, %k = math.sincos %a : {0}\n"
                  "%r = arith.subf %s, %k : {0}\n",
                  type));
  for (const char *op : {"isnan", "isinf", "isfinite", "isnormal"}) {
    add("classify", {type}, type,
        fmt::format("%q = arith.constant 0.0 : {1}\n%d = arith.divf %a, %q : "
                    "{1}\n%v = vector.from_elements %a, %d : vector<2x{1}>\n"
                    "%t = math.{0} %v : vector<2x{1}>\n"
                    "%u = vector.extract %t[1] : i1 from vector<2xi1>\n"
                    "%r = arith.select %u, %q, %a : {1}\n",
                    op, type));
    add("classify", {type}, type,
        fmt::format("%t = math.{0} %a : {1}\n"
                    "%z = arith.constant 0.0 : {1}\n"
                    "%r = arith.select %t, %z, %a : {1}\n",
                    op, type));
  }
}

void Maker::makeConversions() {
  for (const std::string &from : integers)
    for (const std::string &to : integers) {
      if (bitsOf(from) < bitsOf(to)) {
        convert("extsi", from, to);
        convert("extui", from, to);
      } else if (bitsOf(from) > bitsOf(to)) {
        convert("trunci", from, to);
      }
    }
  for (const std::string &type : integers) {
    for (const char *op : {"index_cast", "index_castui"}) {
      convert(op, type, "index");
      convert(op, "index", type);
    }
    for (const char *op : {"extsi", "extui"})
      add("extend_i1", {type, type}, type,
          fmt::format("%t = arith.cmpi slt, %a, %b : {0}\n"
                      "%r = arith.{1} %t : i1 to {0}\n",
                      type, op));
    add("convert", {type}, type,
        fmt::format("%t = arith.trunci %a : {0} to i1\n"
                    "%z = arith.constant 0 : {0}\n"
                    "%r = arith.select %t, %a, %z : {0}\n",
                    type));
    for (const std::string &other : floats) {
      convert("sitofp", type, other);
      convert("uitofp", type, other);
      convert("fptosi", other, type);
      convert("fptoui", other, type);
      if (bitsOf(type) == bitsOf(other)) {
        convert("bitcast", type, other);
        convert("bitcast", other, type);
      }
    }
  }
  for (const std::string &from : floats)
    for (const std::string &to : floats)
      if (bitsOf(from) < bitsOf(to))
        convert("extf", from, to);
      else if (bitsOf(from) > bitsOf(to))
        convert("truncf", from, to);
  for (const std::string &narrow : storage) {
    for (const char *type : {"f16", "bf16", "f32", "f64"})
      convert("extf", narrow, type);
    for (const char *type : {"f16", "bf16", "f32", "f64"})
      convert("truncf", type, narrow);
    convert("bitcast", narrow, "i8");
    convert("bitcast", "i8", narrow);
  }
}

void Maker::makeAtomics() {
  auto atomics = [&](const Types &types,
                     std::initializer_list<const char *> kinds) {
    for (const std::string &type : types)
      for (const char *kind : kinds)
        add("atomic", {type}, type,
            fmt::format("%old = memref.atomic_rmw {1} %a, $out[$i] : ({0}, "
                        "$o) -> {0}\n"
                        "%new = memref.load $out[$i] : $o\n"
                        "%r = arith.{2} %old, %new : {0}\n",
                        type, kind, isFloat(type) ? "subf" : "xori"));
  };
  atomics(integers, {"addi", "muli", "andi", "ori", "xori", "maxs", "mins",
                     "maxu", "minu", "assign"});
  atomics({"i1"}, {"addi", "muli", "andi", "ori", "xori", "maxs", "mins",
                   "maxu", "minu", "assign"});
  atomics(floats, {"addf", "mulf", "maximumf", "minimumf", "maxnumf", "minnumf",
                   "assign"});
  for (const Types &types : {integers, floats, Types{"i1"}})
    for (const std::string &type : types)
      add("atomic", {type}, type,
          fmt::format("%was = memref.generic_atomic_rmw $out[$i] : $o {{\n"
                      "^bb0(%old: {0}):\n"
                      "  %new = arith.{1} %old, %a : {0}\n"
                      "  memref.atomic_yield %new : {0}\n}}\n"
                      "%now = memref.load $out[$i] : $o\n"
                      "%r = arith.{1} %was, %now : {0}\n",
                      type, isFloat(type) ? "subf" : "subi"));
}

} // namespace mgpu::kernels::corpus
