// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Builds and replays a program of two devices: each adds its halves of x and y,
// then both add up what they have.
//
//   c++ -std=c++17 step.cpp $(pkg-config --cflags --libs mgpu) -o step
#include <cstdio>
#include <mgt.hpp>

int main() try {
  mgt::Builder builder("step", 2);
  const auto x = builder.argument("x", {16}), y = builder.argument("y", {16}),
             sum = builder.result("sum", {8});
  mgt_kernel_spec spec{};
  spec.entry = "add";
  spec.host = R"(void add(mgpu_block block, float *a, const float *b) {
    for (uint32_t t = 0; t < block.size.x; ++t)
      a[4 * block.index.x + t] += b[4 * block.index.x + t];
  })";
  spec.block[0] = 4;
  const mgt_kernel add = builder.kernel(spec);
  std::vector<mgt::View> parts;
  for (int device : {0, 1}) {
    auto a = builder.temporary("a", device, {8}),
         b = builder.temporary("b", device, {8});
    builder.copy(a, x.part({8 * device}, {8}));
    builder.copy(b, y.part({8 * device}, {8}));
    builder.launch(add, device, {2}, {mgt::update(a), mgt::read(b)});
    parts.push_back(a);
  }
  builder.allReduce(parts);
  builder.copy(sum, parts[0]);
  mgt::Program program = builder.open("host:2");
  std::vector<float> ones(16, 1), twos(16, 2), out(8);
  program.write("x", ones), program.write("y", twos);
  program.load(), program.replay(), program.read("sum", out);
  std::printf("sum = %g %g ... %g\n", out[0], out[1], out[7]);
} catch (const mgt::Error &error) {
  return std::fprintf(stderr, "%s\n", error.what()), error.status;
}
