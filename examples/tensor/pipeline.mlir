// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two layers on two pairs of devices: relu(x * w1) on devices 0 and 1, and the
// product with w2 on devices 2 and 3. The batch comes in two halves, so that
// the first pair works on the second half while the other pair has the first.
#front = #spmd.layout<mesh = [2], first = 0, split = [[0], []]>
#front_all = #spmd.layout<mesh = [2], first = 0, split = [[], []]>
#back = #spmd.layout<mesh = [2], first = 2, split = [[0], []]>
#back_columns = #spmd.layout<mesh = [2], first = 2, split = [[], [0]]>
#back_all = #spmd.layout<mesh = [2], first = 2, split = [[], []]>

func.func private @front(%x: tensor<16x32xf32>, %w: tensor<32x48xf32>)
    -> tensor<16x48xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<16x48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<16x48xf32>) -> tensor<16x48xf32>
  %a = linalg.matmul ins(%x, %w : tensor<16x32xf32>, tensor<32x48xf32>)
      outs(%init : tensor<16x48xf32>) -> tensor<16x48xf32>
  %h = linalg.max ins(%a, %init : tensor<16x48xf32>, tensor<16x48xf32>)
      outs(%empty : tensor<16x48xf32>) -> tensor<16x48xf32>
  return %h : tensor<16x48xf32>
}

func.func private @back(%h: tensor<32x48xf32>, %w: tensor<48x8xf32>)
    -> tensor<32x8xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x8xf32>) -> tensor<32x8xf32>
  %y = linalg.matmul ins(%h, %w : tensor<32x48xf32>, tensor<48x8xf32>)
      outs(%init : tensor<32x8xf32>) -> tensor<32x8xf32>
  return %y : tensor<32x8xf32>
}

func.func @main(%x0: tensor<32x32xf32> {spmd.layout = #front},
                %x1: tensor<32x32xf32> {spmd.layout = #front},
                %w1: tensor<32x48xf32> {spmd.layout = #front_all},
                %w2: tensor<48x16xf32> {spmd.layout = #back_columns})
    -> (tensor<32x16xf32> {spmd.layout = #back_columns},
        tensor<32x16xf32> {spmd.layout = #back_columns}) {
  %p0 = spmd.full_to_shard %x0 : tensor<32x32xf32> to tensor<16x32xf32>
  %p1 = spmd.full_to_shard %x1 : tensor<32x32xf32> to tensor<16x32xf32>
  %f = spmd.full_to_shard %w1 : tensor<32x48xf32> to tensor<32x48xf32>
  %b = spmd.full_to_shard %w2 : tensor<48x16xf32> to tensor<48x8xf32>
  %there = tensor.empty() : tensor<32x48xf32>
  %h0 = spmd.on 0 to 2 -> tensor<16x48xf32> {
    %h = func.call @front(%p0, %f) : (tensor<16x32xf32>, tensor<32x48xf32>) -> tensor<16x48xf32>
    spmd.yield %h : tensor<16x48xf32>
  }
  %m0 = spmd.move from #front to #back_all full = [32, 48] ins(%h0 : tensor<16x48xf32>)
      outs(%there : tensor<32x48xf32>) -> tensor<32x48xf32>
  %h1 = spmd.on 0 to 2 -> tensor<16x48xf32> {
    %h = func.call @front(%p1, %f) : (tensor<16x32xf32>, tensor<32x48xf32>) -> tensor<16x48xf32>
    spmd.yield %h : tensor<16x48xf32>
  }
  %y0 = spmd.on 2 to 4 -> tensor<32x8xf32> {
    %y = func.call @back(%m0, %b) : (tensor<32x48xf32>, tensor<48x8xf32>) -> tensor<32x8xf32>
    spmd.yield %y : tensor<32x8xf32>
  }
  %m1 = spmd.move from #front to #back_all full = [32, 48] ins(%h1 : tensor<16x48xf32>)
      outs(%there : tensor<32x48xf32>) -> tensor<32x48xf32>
  %y1 = spmd.on 2 to 4 -> tensor<32x8xf32> {
    %y = func.call @back(%m1, %b) : (tensor<32x48xf32>, tensor<48x8xf32>) -> tensor<32x8xf32>
    spmd.yield %y : tensor<32x8xf32>
  }
  %r0 = spmd.shard_to_full %y0 : tensor<32x8xf32> to tensor<32x16xf32>
  %r1 = spmd.shard_to_full %y1 : tensor<32x8xf32> to tensor<32x16xf32>
  return %r0, %r1 : tensor<32x16xf32>, tensor<32x16xf32>
}
