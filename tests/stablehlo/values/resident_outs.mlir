// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The same of a linalg operation that would compute in place, of an argument that says its role.
// options: --repeat 2
// doubles
// argument x: 4xf32 = 1 2 3 4
// argument u: 4xf32 = 10 20 30 40
// expected r0: 4xf32 = 11 22 33 44
#at = affine_map<(i) -> (i)>
func.func @main(%x: tensor<4xf32> {mgpu.role = "resident"}, %u: tensor<4xf32>) -> tensor<4xf32> {
  %r = linalg.generic {indexing_maps = [#at, #at], iterator_types = ["parallel"]} ins(%u : tensor<4xf32>) outs(%x : tensor<4xf32>) {
  ^bb0(%p: f32, %q: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}
