// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A comparator that is no order: elements are neither lost nor doubled.
// argument a: 8xi32 = 5 1 4 2 3 9 7 1
// permutation r0: 8xi32 = 5 1 4 2 3 9 7 1
// permutation r1: 8xi32 = 0 1 2 3 4 5 6 7
func.func @main(%a: tensor<8xi32>) -> (tensor<8xi32>, tensor<8xi32>) {
  %i = stablehlo.iota dim = 0 : tensor<8xi32>
  %r:2 = "stablehlo.sort"(%a, %i) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%x: tensor<i32>, %y: tensor<i32>, %u: tensor<i32>, %v: tensor<i32>):
    %p = stablehlo.compare NE, %x, %y, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }) : (tensor<8xi32>, tensor<8xi32>) -> (tensor<8xi32>, tensor<8xi32>)
  return %r#0, %r#1 : tensor<8xi32>, tensor<8xi32>
}
