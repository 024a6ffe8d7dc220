// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "CorpusMaker.h"
#include "KernelRunner.h"

#include <fmt/format.h>

namespace mgpu::kernels::corpus {

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
      kernels.push_back(
          {fmt::format("{}_{}_{}", name, type, shape),
           module("%x: " + memref + ", %o: " + out, text),
           block,
           {3},
           {{type, size_t(3 * threads)}, {type, size_t(3 * threads) * count}}});
    }
  };
  for (const Types &types : {integers, floats})
    for (const std::string &type : types) {
      const std::vector<const char *> kinds =
          isFloat(type)
              ? std::vector<const char *>{"add",      "mul",     "maximumf",
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
                      type, isFloat(type) ? "mulf" : "xori"),
          1);
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
      // Vectors, lane by lane.
      some = fmt::format(
          "%d = arith.constant 3 : i32\n%n = arith.constant 16 : i32\n"
          "%v = vector.from_elements %a, %a : vector<2x{0}>\n"
          "%sum = arith.{1} %v, %v : vector<2x{0}>\n"
          "%q = vector.insert %a, %sum[0] : {0} into vector<2x{0}>\n"
          "%s0, %ok0 = gpu.shuffle down %q, %d, %n : vector<2x{0}>\n"
          "%s1, %ok1 = gpu.rotate %q, 5, 8 : vector<2x{0}>\n"
          "%s2 = gpu.subgroup_reduce add %q : (vector<2x{0}>) -> "
          "vector<2x{0}>\n"
          "%s3 = gpu.subgroup_reduce add %q cluster(size = 4, stride = 2) : "
          "(vector<2x{0}>) -> vector<2x{0}>\n",
          type, isFloat(type) ? "addf" : "addi");
      for (size_t k = 0; k < 4; ++k)
        some += fmt::format("%l{0} = vector.extract %s{0}[{1}] : {2} from "
                            "vector<2x{2}>\n",
                            k, k % 2, type);
      add("exchange_vectors", type, some, 4);
    }
  for (const Types &types : {integers, floats, storage, Types{"index", "i1"}})
    for (const std::string &type : types) {
      const std::string space = "#gpu.address_space<workgroup>";
      // Each thread reads what another one wrote.
      add("workgroup", type,
          fmt::format("%p = memref.alloca() : memref<128x{0}, {1}>\n"
                      "%c1 = arith.constant 1 : index\n"
                      "%q = arith.xori %i, %c1 : index\n"
                      "%n = gpu.block_dim x\n%m = gpu.block_dim y\n"
                      "%all = arith.muli %n, %m : index\n"
                      "%last = arith.subi %all, %c1 : index\n"
                      "%from = arith.minui %q, %last : index\n"
                      "memref.store %a, %p[%i] : memref<128x{0}, {1}>\n"
                      "gpu.barrier\n"
                      "%l0 = memref.load %p[%from] : memref<128x{0}, {1}>\n",
                      type, space),
          1);
      // The same in the launch's own bytes, behind 16 others.
      for (size_t k = kernels.size() - 3, end = kernels.size(); k < end; ++k) {
        CorpusKernel dynamic = kernels[k];
        dynamic.name = "dynamic" + dynamic.name.substr(dynamic.name.find('_'));
        auto put = [&](const std::string &what, const std::string &with) {
          dynamic.text.replace(dynamic.text.find(what), what.size(), with);
        };
        put(fmt::format("%p = memref.alloca() : memref<128x{}, {}>", type,
                        space),
            fmt::format("%raw = gpu.dynamic_shared_memory : memref<?xi8, {1}>\n"
                        "%skip = arith.constant 16 : index\n"
                        "%p = memref.view %raw[%skip][] : memref<?xi8, {1}> to "
                        "memref<128x{0}, {1}>",
                        type, space));
        dynamic.text.replace(
            dynamic.text.find(") {", dynamic.text.find("@entry")), 3,
            ") attributes {mgpu.dynamic_shared_bytes = 1040 : i64} {");
        kernels.push_back(std::move(dynamic));
      }
    }
  return kernels;
}

} // namespace mgpu::kernels::corpus
