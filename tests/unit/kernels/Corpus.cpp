// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Corpus.h"
#include "KernelRunner.h"

#include <cctype>
#include <cstring>
#include <fmt/format.h>
#include <map>
#include <span>

namespace mgpu::kernels {

namespace {

using Types = std::vector<std::string>;

const Types integers{"i8", "i16", "i32", "i64"},
    floats{"f16", "bf16", "f32", "f64"}, storage{"f8E4M3FN", "f8E5M2"};

unsigned bitsOf(const std::string &type) {
  if (type == "index")
    return 64;
  if (type == "bf16")
    return 16;
  return unsigned(std::stoul(type.substr(1)));
}

/// `operands` are loaded into %a, %b, ...; `body` leaves %r, of `result`, for
/// $out[$i], of type $o.
struct Operation {
  std::string family; ///< those of one family and its operands share a kernel
  Types operands;
  std::string result, body;
};

/// A launch, and how one of its threads finds its element.
struct Shape {
  const char *name;
  Dim3 block, grid;
  const char *extents, *layout; ///< of each memref
  const char *indices;
  const char *before, *after;
};

const Shape one{"one", {1}, {1}, "1", "", "%i", "%i = gpu.global_id x\n", ""},
    fitting{"fitting", {32}, {3}, "96", "", "%i", "%i = gpu.global_id x\n", ""},
    ragged{"ragged",
           {128},
           {8},
           "1000",
           "",
           "%i",
           R"(%i = gpu.global_id x
%n = arith.constant 1000 : index
%in = arith.cmpi slt, %i, %n : index
scf.if %in {
)",
           "}\n"},
    plane{"plane",
          {8, 4},
          {5, 3},
          "12x40",
          ", strided<[48, 1], offset: 3>",
          "%j, %i",
          "%i = gpu.global_id x\n%j = gpu.global_id y\n",
          ""},
    box{"box",
        {4, 4, 2},
        {3, 2, 2},
        "4x8x12",
        "",
        "%k, %j, %i",
        "%i = gpu.global_id x\n%j = gpu.global_id y\n%k = gpu.global_id z\n",
        ""};

/// `body` with names of its own, but for operands and indices.
std::string renamed(const std::string &body, const std::string &suffix) {
  std::string out;
  for (size_t at = 0; at < body.size();) {
    out += body[at];
    if (body[at++] != '%')
      continue;
    std::string name;
    while (at < body.size() && (std::isalnum(body[at]) || body[at] == '_'))
      name += body[at++];
    const bool isShared = name == "a" || name == "b" || name == "c";
    out += name + (isShared ? "" : suffix);
  }
  return out;
}

/// All operations have the operands of the first.
CorpusKernel kernelOf(const std::string &name,
                      std::span<const Operation> operations,
                      const Shape &shape) {
  auto memref = [&](const std::string &type) {
    return fmt::format("memref<{}x{}{}>", shape.extents, type, shape.layout);
  };
  const Types &operands = operations.front().operands;
  std::string arguments, body = shape.before;
  for (size_t k = 0; k < operands.size(); ++k) {
    char letter = char('a' + k);
    const std::string type = memref(operands[k]);
    arguments += fmt::format("%m{}: {}, ", letter, type);
    body += fmt::format("%{0} = memref.load %m{0}[{1}] : {2}\n", letter,
                        shape.indices, type);
  }
  for (size_t k = 0; k < operations.size(); ++k) {
    const std::string number = std::to_string(k),
                      type = memref(operations[k].result);
    arguments += fmt::format("{}%o{}: {}", k ? ", " : "", number, type);
    std::string one = renamed(
        operations[k].body + "memref.store %r, $out[$i] : $o\n", "_" + number);
    for (const auto &[mark, text] : {std::pair("$out", "%o" + number),
                                     {"$i", std::string(shape.indices)},
                                     {"$o", type}})
      for (size_t at; (at = one.find(mark)) != std::string::npos;)
        one.replace(at, std::strlen(mark), text);
    body += one;
  }
  return {name + "_" + shape.name, module(arguments, body + shape.after),
          shape.block, shape.grid};
}

/// Collects the operations.
class Maker {
public:
  std::vector<Operation> operations;

  void add(const std::string &family, const Types &operands,
           const std::string &result, const std::string &body) {
    operations.push_back({family, operands, result, body});
  }
  /// `op` of so many operands of one type, and of that type.
  void same(const std::string &family, const std::string &op, size_t count,
            const std::string &type) {
    std::string list;
    for (size_t k = 0; k < count; ++k)
      list += fmt::format("{}%{}", k ? ", " : "", char('a' + k));
    add(family, Types(count, type), type,
        fmt::format("%r = {} {} : {}\n", op, list, type));
  }
  void convert(const std::string &op, const std::string &from,
               const std::string &to) {
    add("convert", {from}, to,
        fmt::format("%r = arith.{} %a : {} to {}\n", op, from, to));
  }

  void makeIntegers(const std::string &type);
  void makeFloats(const std::string &type);
  void makeConversions();
  void makeAtomics();
  void makeVectors();
};

void Maker::makeIntegers(const std::string &type) {
  for (const char *op : {"addi", "subi", "muli", "andi", "ori", "xori", "maxsi",
                         "minsi", "maxui", "minui", "shli", "shrsi", "shrui"})
    same("integer", std::string("arith.") + op, 2, type);
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
  for (const char *op : {"mulsi_extended", "mului_extended"})
    add("extended", {type, type}, type,
        fmt::format("%low, %high = arith.{0} %a, %b : {1}\n"
                    "%r = arith.subi %low, %high : {1}\n",
                    op, type));
  for (const char *op : {"absi", "ctlz", "cttz", "ctpop"})
    same("bits", std::string("math.") + op, 1, type);
  same("power", "math.ipowi", 2, type);
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
  for (const char *op : {"isnan", "isinf", "isfinite"})
    add("classify", {type}, type,
        fmt::format("%t = math.{0} %a : {1}\n"
                    "%z = arith.constant 0.0 : {1}\n"
                    "%r = arith.select %t, %z, %a : {1}\n",
                    op, type));
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
  for (const char *op :
       {"andi", "ori", "xori", "addi", "muli", "maxsi", "minui"})
    add("i1", {"i32", "i32"}, "i32",
        fmt::format("%s = arith.cmpi slt, %a, %b : i32\n"
                    "%t = arith.cmpi ult, %a, %b : i32\n"
                    "%u = arith.{} %s, %t : i1\n"
                    "%r = arith.extui %u : i1 to i32\n",
                    op));
  for (const std::string &from : floats)
    for (const std::string &to : floats)
      if (bitsOf(from) < bitsOf(to))
        convert("extf", from, to);
      else if (bitsOf(from) > bitsOf(to) && !(from == "f64" && to == "bf16"))
        convert("truncf", from, to);
  for (const std::string &narrow : storage) {
    for (const char *type : {"f16", "bf16", "f32", "f64"})
      convert("extf", narrow, type);
    for (const char *type : {"f16", "bf16", "f32"})
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
            fmt::format(
                "%r = memref.atomic_rmw {1} %a, $out[$i] : ({0}, $o) -> "
                "{0}\n",
                type, kind));
  };
  atomics(integers, {"addi", "muli", "andi", "ori", "xori", "maxs", "mins",
                     "maxu", "minu", "assign"});
  atomics(floats, {"addf", "mulf", "maximumf", "minimumf", "maxnumf", "minnumf",
                   "assign"});
  for (const Types &types : {integers, floats})
    for (const std::string &type : types)
      add("atomic", {type}, type,
          fmt::format("%r = memref.generic_atomic_rmw $out[$i] : $o {{\n"
                      "^bb0(%old: {0}):\n"
                      "  %new = arith.{1} %old, %a : {0}\n"
                      "  memref.atomic_yield %new : {0}\n}}\n",
                      type, type[0] == 'i' ? "subi" : "subf"));
}

void Maker::makeVectors() {
  for (const Types &types : {integers, floats})
    for (const std::string &type : types) {
      const bool isFloat = type.find('f') != std::string::npos;
      // In private memory; of 2, 4, 8 and 16 bytes.
      for (unsigned bytes : {2, 4, 8, 16}) {
        unsigned count = bytes * 8 / bitsOf(type);
        if (count == 0)
          continue;
        add("vector_bytes", {type}, type,
            fmt::format("%z = arith.constant 0 : index\n"
                        "%p = memref.alloca() : memref<{0}x{1}>\n"
                        "memref.store %a, %p[%z] : memref<{0}x{1}>\n"
                        "%v = vector.load %p[%z] {{alignment = {2} : i64}} : "
                        "memref<{0}x{1}>, vector<{0}x{1}>\n"
                        "%w = arith.{3} %v, %v : vector<{0}x{1}>\n"
                        "vector.store %w, %p[%z] {{alignment = {2} : i64}} : "
                        "memref<{0}x{1}>, vector<{0}x{1}>\n"
                        "%r = memref.load %p[%z] : memref<{0}x{1}>\n",
                        count, type, bytes, isFloat ? "addf" : "addi"));
      }
      std::vector<const char *> kinds =
          isFloat ? std::vector<const char *>{"add",      "mul",     "maximumf",
                                              "minimumf", "maxnumf", "minnumf"}
                  : std::vector<const char *>{"add",   "mul",   "maxsi",
                                              "minsi", "maxui", "minui",
                                              "and",   "or",    "xor"};
      for (const char *kind : kinds)
        add("vector_reduce", {type, type}, type,
            fmt::format("%v = vector.from_elements %a, %b, %a, %b : "
                        "vector<4x{1}>\n"
                        "%r = vector.reduction <{0}>, %v : vector<4x{1}> into "
                        "{1}\n",
                        kind, type));
      add("vector_parts", {type, type}, type,
          fmt::format(
              "%v = vector.broadcast %a : {0} to vector<2x4x{0}>\n"
              "%s = vector.shape_cast %v : vector<2x4x{0}> to vector<8x{0}>\n"
              "%i1 = vector.insert %b, %s[3] : {0} into vector<8x{0}>\n"
              "%t = vector.shuffle %i1, %s [0, 11, 3, 5] : vector<8x{0}>, "
              "vector<8x{0}>\n"
              "%r = vector.extract %t[2] : {0} from vector<4x{0}>\n",
              type));
    }
}

/// What threads of a block do together, of each type.
std::vector<CorpusKernel> together() {
  std::vector<CorpusKernel> kernels;
  // `body` leaves %l0 to %l{count - 1}.
  auto add = [&](const std::string &name, const std::string &type,
                 const std::string &body, size_t count) {
    for (auto [shape, block, threads] : {std::tuple("warp", Dim3{32, 1, 1}, 32),
                                         {"rest", Dim3{100, 1, 1}, 100},
                                         {"square", Dim3{8, 16, 1}, 128}}) {
      std::string memref = fmt::format("memref<3x{}x{}>", threads, type),
                  out = fmt::format("memref<3x{}x{}x{}>", count, threads, type);
      std::string text = fmt::format(
          "%t = gpu.thread_id x\n%y = gpu.thread_id y\n%g = gpu.block_id x\n"
          "%w = arith.constant {0} : index\n%yw = arith.muli %y, %w : index\n"
          "%i = arith.addi %yw, %t : index\n"
          "%a = memref.load %x[%g, %i] : {1}\n{2}",
          block.x, memref, body);
      for (size_t k = 0; k < count; ++k)
        text += fmt::format("%row{0} = arith.constant {0} : index\n"
                            "memref.store %l{0}, %o[%g, %row{0}, %i] : {1}\n",
                            k, out);
      kernels.push_back({fmt::format("{}_{}_{}", name, type, shape),
                         module("%x: " + memref + ", %o: " + out, text),
                         block,
                         {3}});
    }
  };
  for (const Types &types : {integers, floats})
    for (const std::string &type : types) {
      const bool isFloat = type.find('f') != std::string::npos;
      const std::vector<const char *> kinds =
          isFloat ? std::vector<const char *>{"add",      "mul",     "maximumf",
                                              "minimumf", "maxnumf", "minnumf"}
                  : std::vector<const char *>{"add",   "mul",   "maxsi",
                                              "minsi", "maxui", "minui",
                                              "and",   "or",    "xor"};
      std::string all, some;
      for (size_t k = 0; k < kinds.size(); ++k) {
        all += fmt::format("%l{0} = gpu.all_reduce {1} %a uniform {{}} : ({2}) "
                           "-> ({2})\n",
                           k, kinds[k], type);
        some += fmt::format("%l{0} = gpu.subgroup_reduce {1} %a : ({2}) -> "
                            "{2}\n",
                            k, kinds[k], type);
      }
      add("all_reduce", type, all, kinds.size());
      add("subgroup_reduce", type, some, kinds.size());
      const std::pair<int, int> clusters[] = {
          {1, 1}, {2, 16}, {4, 1}, {8, 4}, {16, 2}};
      some.clear();
      for (size_t k = 0; k < std::size(clusters); ++k)
        some += fmt::format("%l{0} = gpu.subgroup_reduce add %a cluster(size = "
                            "{1}, stride = {2}) : ({3}) -> {3}\n",
                            k, clusters[k].first, clusters[k].second, type);
      add("clusters", type, some, std::size(clusters));
      add("all_reduce_region", type,
          fmt::format("%l0 = gpu.all_reduce %a uniform {{\n"
                      "^bb0(%l: {0}, %m: {0}):\n"
                      "  %s = arith.{1} %l, %m : {0}\n"
                      "  gpu.yield %s : {0}\n}} : ({0}) -> ({0})\n",
                      type, isFloat ? "mulf" : "xori"),
          1);
      if (bitsOf(type) < 32 && !isFloat)
        continue; // shuffles of whole words
      const char *const modes[] = {"xor", "up", "down", "idx"};
      some = "%d = arith.constant 5 : i32\n%n = arith.constant 32 : i32\n";
      for (size_t k = 0; k < 4; ++k)
        some += fmt::format("%s{0}, %ok{0} = gpu.shuffle {1} %a, %d, %n : {2}\n"
                            "%l{0} = arith.select %ok{0}, %s{0}, %a : {2}\n",
                            k, modes[k], type);
      some += fmt::format("%s4, %ok4 = gpu.rotate %a, 3, 16 : {0}\n"
                          "%l4 = arith.select %ok4, %s4, %a : {0}\n",
                          type);
      add("shuffle", type, some, 5);
    }
  return kernels;
}

} // namespace

std::vector<CorpusKernel> corpusKernels() {
  Maker maker;
  for (const std::string &type : integers)
    maker.makeIntegers(type);
  maker.makeIntegers("index");
  for (const std::string &type : floats)
    maker.makeFloats(type);
  maker.makeConversions();
  maker.makeAtomics();
  maker.makeVectors();
  std::vector<CorpusKernel> kernels;
  std::map<std::pair<std::string, Types>, std::vector<Operation>> groups;
  for (const Operation &op : maker.operations)
    groups[{op.family, op.operands}].push_back(op);
  constexpr size_t most = 8; // operations of a kernel
  for (const auto &[key, operations] : groups)
    for (size_t first = 0; first < operations.size(); first += most) {
      std::string name = key.first;
      for (const std::string &type : key.second)
        name += "_" + type;
      if (first > 0)
        name += "_" + std::to_string(first);
      const std::span<const Operation> some(
          operations.data() + first, std::min(most, operations.size() - first));
      for (const Shape *shape : {&one, &fitting, &ragged})
        kernels.push_back(kernelOf(name, some, *shape));
    }
  for (const Types &types : {integers, floats, storage, Types{"index", "i1"}})
    for (const std::string &type : types) {
      Operation copy{
          "copy_" + type,
          {type, type},
          type,
          fmt::format("%r = arith.select %first, %a, %b : {}\n", type)};
      copy.body = "%t0 = gpu.thread_id x\n%c2 = arith.constant 2 : index\n"
                  "%first = arith.cmpi slt, %t0, %c2 : index\n" +
                  copy.body;
      for (const Shape *shape : {&one, &fitting, &ragged, &plane, &box})
        kernels.push_back(kernelOf("copy_" + type, {&copy, 1}, *shape));
    }
  for (CorpusKernel &each : together())
    kernels.push_back(std::move(each));
  return kernels;
}

} // namespace mgpu::kernels
