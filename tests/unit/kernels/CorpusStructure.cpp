// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Vectors, memory and control flow, each with values of any type.
#include "CorpusMaker.h"

#include <fmt/format.h>

namespace mgpu::kernels::corpus {

/// Bodies on %a and %b of $t that leave %r; each is one operation of the lists
/// of memref, scf, cf, func and vector at least.
static const char *const bodies[] = {
    // Private memory, a static and a dynamic part of it.
    R"(%p = memref.alloca() : memref<2x3x$t>
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%c2 = arith.constant 2 : index
memref.store %a, %p[%c1, %c2] : memref<2x3x$t>
memref.store %b, %p[%c0, %c2] : memref<2x3x$t>
%s = memref.subview %p[1, 1] [1, 2] [1, 1] : memref<2x3x$t> to memref<2x$t, strided<[1], offset: 4>>
%r = memref.load %s[%c1] : memref<2x$t, strided<[1], offset: 4>>
)",
    R"(%p = memref.alloca() : memref<2x3x$t>
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%c2 = arith.constant 2 : index
%t = gpu.thread_id x
%q = arith.remui %t, %c2 : index
memref.store %a, %p[%c0, %c1] : memref<2x3x$t>
memref.store %b, %p[%c1, %c1] : memref<2x3x$t>
%s = memref.subview %p[0, %q] [2, 2] [1, 1] : memref<2x3x$t> to memref<2x2x$t, strided<[3, 1], offset: ?>>
%w = arith.subi %c1, %q : index
%r = memref.load %s[%q, %w] : memref<2x2x$t, strided<[3, 1], offset: ?>>
)",
    // Strides that are values.
    R"(%p = memref.alloca() : memref<8x$t>
%c1 = arith.constant 1 : index
%c2 = arith.constant 2 : index
%c5 = arith.constant 5 : index
%t = gpu.thread_id x
%q = arith.remui %t, %c2 : index
%step = arith.addi %q, %c1 : index
%at = arith.addi %q, %c2 : index
memref.store %a, %p[%c2] : memref<8x$t>
memref.store %b, %p[%c5] : memref<8x$t>
%s = memref.reinterpret_cast %p to offset: [%at], sizes: [2, 2], strides: [%step, 3] : memref<8x$t> to memref<2x2x$t, strided<[?, 3], offset: ?>>
%c0 = arith.constant 0 : index
memref.store %a, %s[%c1, %c0] : memref<2x2x$t, strided<[?, 3], offset: ?>>
memref.store %b, %s[%c0, %c0] : memref<2x2x$t, strided<[?, 3], offset: ?>>
%r = memref.load %p[%c2] : memref<8x$t>
)",
    R"(%p = memref.alloca() : memref<6x$t>
%c1 = arith.constant 1 : index
%c2 = arith.constant 2 : index
%c5 = arith.constant 5 : index
%e = memref.expand_shape %p [[0, 1]] output_shape [2, 3] : memref<6x$t> into memref<2x3x$t>
memref.store %a, %e[%c1, %c2] : memref<2x3x$t>
%f = memref.collapse_shape %e [[0, 1]] : memref<2x3x$t> into memref<6x$t>
%r = memref.load %f[%c5] : memref<6x$t>
)",
    R"(%p = memref.alloca() : memref<2x3x$t>
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%d = memref.cast %p : memref<2x3x$t> to memref<?x?x$t>
%n = memref.dim %d, %c0 : memref<?x?x$t>
%m = memref.dim %d, %c1 : memref<?x?x$t>
%i0 = arith.subi %n, %c1 : index
%i1 = arith.subi %m, %c1 : index
memref.store %a, %p[%c0, %c0] : memref<2x3x$t>
memref.store %b, %d[%i0, %i1] : memref<?x?x$t>
%base, %offset, %sizes:2, %strides:2 = memref.extract_strided_metadata %d : memref<?x?x$t> -> memref<$t>, index, index, index, index, index
%at = arith.subi %strides#0, %sizes#1 : index
%s = memref.subview %d[%at, 0] [%n, %m] [1, 1] : memref<?x?x$t> to memref<?x?x$t, strided<[?, 1], offset: ?>>
%r = memref.load %s[%i0, %i1] : memref<?x?x$t, strided<[?, 1], offset: ?>>
)",
    // Control flow that carries the values.
    R"(%t = gpu.thread_id x
%c3 = arith.constant 3 : index
%in = arith.cmpi ult, %t, %c3 : index
%x, %y = scf.if %in -> ($t, $t) {
  scf.yield %a, %b : $t, $t
} else {
  scf.yield %b, %a : $t, $t
}
%r = arith.select %in, %y, %x : $t
)",
    R"(%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%t = gpu.thread_id x
%x, %y = scf.for %k = %c0 to %t step %c1 iter_args(%u = %a, %v = %b) -> ($t, $t) {
  scf.yield %v, %u : $t, $t
}
%c4 = arith.constant 4 : i32
%z0 = arith.constant 0 : i32
%r = scf.for unsigned %k = %z0 to %c4 step %c4 iter_args(%u = %y) -> ($t) : i32 {
  scf.yield %x : $t
}
)",
    R"(%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%t = gpu.thread_id x
%n, %x, %y = scf.while (%k = %t, %u = %a, %v = %b) : (index, $t, $t) -> (index, $t, $t) {
  %more = arith.cmpi sgt, %k, %c0 : index
  scf.condition(%more) %k, %v, %u : index, $t, $t
} do {
^bb0(%k: index, %u: $t, %v: $t):
  %next = arith.subi %k, %c1 : index
  scf.yield %next, %u, %v : index, $t, $t
}
%zero = arith.cmpi eq, %n, %c0 : index
%r = arith.select %zero, %x, %y : $t
)",
    R"(%t = gpu.thread_id x
%c3 = arith.constant 3 : index
%m = arith.remui %t, %c3 : index
%r = scf.index_switch %m -> $t
case 0 {
  scf.yield %a : $t
}
case 2 {
  %e = scf.execute_region -> $t {
    scf.yield %b : $t
  }
  scf.yield %e : $t
}
default {
  scf.yield %a : $t
}
)",
    R"(%p = memref.alloca() : memref<2x3x$t>
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%c2 = arith.constant 2 : index
%c3 = arith.constant 3 : index
scf.parallel (%j, %k) = (%c0, %c0) to (%c2, %c3) step (%c1, %c2) {
  memref.store %b, %p[%j, %k] : memref<2x3x$t>
  scf.reduce
}
%s = scf.parallel (%j) = (%c0) to (%c2) step (%c1) init (%a) -> $t {
  %v = memref.load %p[%j, %c2] : memref<2x3x$t>
  scf.reduce(%v : $t) {
  ^bb0(%x: $t, %y: $t):
    scf.reduce.return %y : $t
  }
}
%t = gpu.thread_id x
%odd = arith.cmpi ugt, %t, %c1 : index
%r = arith.select %odd, %s, %a : $t
)",
    R"(%t = gpu.thread_id x
%x, %y = func.call @swap_$f(%a, %b) : ($t, $t) -> ($t, $t)
%r = func.call @pick_$f(%x, %y, %t) : ($t, $t, index) -> $t
)",
    // Vectors of two dimensions, and of none.
    R"(%p = memref.alloca() : memref<3x4x$t>
%q = memref.alloca() : memref<3x4x$t>
%c1 = arith.constant 1 : index
%c2 = arith.constant 2 : index
%v = vector.broadcast %a : $t to vector<2x2x$t>
%w = vector.insert %b, %v[1, 0] : $t into vector<2x2x$t>
vector.store %w, %p[%c1, %c2] : memref<3x4x$t>, vector<2x2x$t>
%l = vector.load %p[%c1, %c2] : memref<3x4x$t>, vector<2x2x$t>
vector.store %l, %q[%c1, %c1] : memref<3x4x$t>, vector<2x2x$t>
%r = memref.load %q[%c2, %c1] : memref<3x4x$t>
)",
    R"(%p = memref.alloca() : memref<3x4x$t>
%c1 = arith.constant 1 : index
%v = vector.broadcast %a : $t to vector<$t>
vector.store %v, %p[%c1, %c1] : memref<3x4x$t>, vector<$t>
%l = vector.load %p[%c1, %c1] : memref<3x4x$t>, vector<$t>
%r = vector.extract %l[] : $t from vector<$t>
)",
    // Lanes at positions that are values.
    R"(%t = gpu.thread_id x
%c1 = arith.constant 1 : index
%c2 = arith.constant 2 : index
%c3 = arith.constant 3 : index
%i0 = arith.remui %t, %c2 : index
%i1 = arith.remui %t, %c3 : index
%u = vector.from_elements %a, %b : vector<2x1x$t>
%v = vector.broadcast %u : vector<2x1x$t> to vector<2x3x$t>
%w = vector.insert %a, %v[%i0, 1] : $t into vector<2x3x$t>
%x = vector.extract %w[1] : vector<3x$t> from vector<2x3x$t>
%y = vector.insert %x, %v[0] : vector<3x$t> into vector<2x3x$t>
%r = vector.extract %y[%i0, %i1] : $t from vector<2x3x$t>
)",
    R"(%u = vector.from_elements %a, %b, %b, %a : vector<4x$t>
%v = vector.shuffle %u, %u [3, 1, 5] : vector<4x$t>, vector<4x$t>
%w:3 = vector.to_elements %v : vector<3x$t>
%s = vector.step : vector<4xindex>
%n = vector.extract %s[3] : index from vector<4xindex>
%t = gpu.thread_id x
%m = arith.minui %n, %t : index
%x = vector.extract %u[%m] : $t from vector<4x$t>
%c2 = arith.constant 2 : index
%in = arith.cmpi eq, %m, %c2 : index
%r = arith.select %in, %x, %w#1 : $t
)",
};

/// What they call.
static const char *const functions = R"(
  func.func @swap_$f(%x: $t, %y: $t) -> ($t, $t) {
    return %y, %x : $t, $t
  }
  func.func @pick_$f(%x: $t, %y: $t, %n: index) -> $t {
    %c1 = arith.constant 1 : index
    %c0 = arith.constant 0 : index
    cf.br ^head(%x, %y, %n : $t, $t, index)
  ^head(%u: $t, %v: $t, %k: index):
    %more = arith.cmpi sgt, %k, %c0 : index
    cf.cond_br %more, ^body, ^exit
  ^body:
    %next = arith.subi %k, %c1 : index
    cf.br ^head(%v, %u, %next : $t, $t, index)
  ^exit:
    %i = arith.index_cast %n : index to i32
    cf.switch %i : i32, [
      default: ^last(%u : $t),
      7: ^last(%v : $t)
    ]
  ^last(%w: $t):
    return %w : $t
  })";

void Maker::makeStructure(const std::string &type) {
  auto with = [&](std::string text) {
    for (const char *mark : {"$t", "$f"})
      for (size_t at; (at = text.find(mark)) != std::string::npos;)
        text.replace(at, 2, type);
    return text;
  };
  for (const char *body : bodies) {
    const bool calls =
        std::string_view(body).find("@swap") != std::string::npos;
    add(calls ? "call" : "structure", {type, type}, type, with(body),
        calls ? with(functions) : "");
  }
}

void Maker::makeVectors() {
  for (const Types &types : {integers, floats})
    for (const std::string &type : types) {
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
                        count, type, bytes, isFloat(type) ? "addf" : "addi"));
      }
      std::vector<const char *> kinds =
          isFloat(type)
              ? std::vector<const char *>{"add",      "mul",     "maximumf",
                                          "minimumf", "maxnumf", "minnumf"}
              : std::vector<const char *>{"add",   "mul",   "maxsi",
                                          "minsi", "maxui", "minui",
                                          "and",   "or",    "xor"};
      for (const char *kind : kinds) {
        add("vector_reduce", {type, type}, type,
            fmt::format("%v = vector.from_elements %a, %b, %a, %b : "
                        "vector<4x{1}>\n"
                        "%r = vector.reduction <{0}>, %v : vector<4x{1}> into "
                        "{1}\n",
                        kind, type));
        add("vector_reduce", {type, type}, type,
            fmt::format("%v = vector.from_elements %a, %a, %b : vector<3x{1}>\n"
                        "%r = vector.reduction <{0}>, %v, %b : vector<3x{1}> "
                        "into {1}\n",
                        kind, type));
      }
      if (isFloat(type))
        add("vector_fma", {type, type, type}, type,
            fmt::format("%u = vector.broadcast %a : {0} to vector<2x{0}>\n"
                        "%v = vector.broadcast %b : {0} to vector<2x{0}>\n"
                        "%w = vector.broadcast %c : {0} to vector<2x{0}>\n"
                        "%f = vector.fma %u, %v, %w : vector<2x{0}>\n"
                        "%r = vector.extract %f[1] : {0} from vector<2x{0}>\n",
                        type));
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

} // namespace mgpu::kernels::corpus
