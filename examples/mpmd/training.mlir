// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A training step of y = relu(x w1) w2 as a pipeline: mesh "m1" has the first
// layer, mesh "m2" the second one, two devices each, which share the rows of a
// microbatch. Four microbatches go forward and backward; their gradients add
// up, and then both meshes update their weights.
#topology = #mpmd.topology<<"m1" : <["d"=2]>>, <"m2" : <["d"=2]>>>
!x = !mpmd.mesh_tensor<"m1", tensor<8x16xf32>, sharding=<@m1, [{"d"}, {}]>>
!h1 = !mpmd.mesh_tensor<"m1", tensor<8x24xf32>, sharding=<@m1, [{"d"}, {}]>>
!w1 = !mpmd.mesh_tensor<"m1", tensor<16x24xf32>>
!h2 = !mpmd.mesh_tensor<"m2", tensor<8x24xf32>, sharding=<@m2, [{"d"}, {}]>>
!t = !mpmd.mesh_tensor<"m2", tensor<8x4xf32>, sharding=<@m2, [{"d"}, {}]>>
!w2 = !mpmd.mesh_tensor<"m2", tensor<24x4xf32>>

func.func private @microbatch(%x: !x, %t: !t, %w1: !w1, %w2: !w2, %g1: !w1, %g2: !w2)
    -> (!w1, !w2) attributes {topology = #topology} {
  %h = mpmd.fragment<mesh="m1", origin=["front"]> (%x, %w1)
      (%a: tensor<8x16xf32>, %w: tensor<16x24xf32>) {
    %zero = stablehlo.constant dense<0.0> : tensor<8x24xf32>
    %0 = stablehlo.dot %a, %w : (tensor<8x16xf32>, tensor<16x24xf32>) -> tensor<8x24xf32>
    %1 = stablehlo.maximum %0, %zero : tensor<8x24xf32>
    mpmd.return %1 : tensor<8x24xf32>
  } : (!x, !w1) -> !h1
  %there = mpmd.transfer %h : (!h1) -> !h2
  // The gradient of |y - t|^2 / 2.
  %back:2 = mpmd.fragment<mesh="m2", origin=["back"]> (%there, %t, %w2, %g2)
      (%a: tensor<8x24xf32>, %b: tensor<8x4xf32>, %w: tensor<24x4xf32>, %g: tensor<24x4xf32>) {
    %y = stablehlo.dot %a, %w : (tensor<8x24xf32>, tensor<24x4xf32>) -> tensor<8x4xf32>
    %dy = stablehlo.subtract %y, %b : tensor<8x4xf32>
    %dh = stablehlo.dot_general %dy, %w, contracting_dims = [1] x [1]
        : (tensor<8x4xf32>, tensor<24x4xf32>) -> tensor<8x24xf32>
    %dw = stablehlo.dot_general %a, %dy, contracting_dims = [0] x [0]
        : (tensor<8x24xf32>, tensor<8x4xf32>) -> tensor<24x4xf32>
    %sum = stablehlo.add %g, %dw : tensor<24x4xf32>
    mpmd.return %dh, %sum : tensor<8x24xf32>, tensor<24x4xf32>
  } : (!h2, !t, !w2, !w2) -> (!h2, !w2)
  %again = mpmd.transfer %back#0 : (!h2) -> !h1
  %front = mpmd.fragment<mesh="m1", origin=["front"(1)]> (%x, %h, %again, %g1)
      (%a: tensor<8x16xf32>, %b: tensor<8x24xf32>, %d: tensor<8x24xf32>, %g: tensor<16x24xf32>) {
    %zero = stablehlo.constant dense<0.0> : tensor<8x24xf32>
    %on = stablehlo.compare GT, %b, %zero : (tensor<8x24xf32>, tensor<8x24xf32>) -> tensor<8x24xi1>
    %da = stablehlo.select %on, %d, %zero : tensor<8x24xi1>, tensor<8x24xf32>
    %dw = stablehlo.dot_general %a, %da, contracting_dims = [0] x [0]
        : (tensor<8x16xf32>, tensor<8x24xf32>) -> tensor<16x24xf32>
    %sum = stablehlo.add %g, %dw : tensor<16x24xf32>
    mpmd.return %sum : tensor<16x24xf32>
  } : (!x, !h1, !h1, !w1) -> !w1
  return %front, %back#1 : !w1, !w2
}

func.func @main(%x0: !x, %x1: !x, %x2: !x, %x3: !x, %t0: !t, %t1: !t, %t2: !t, %t3: !t,
                %w1: !w1 {tf.aliasing_output = 0 : i32},
                %w2: !w2 {tf.aliasing_output = 1 : i32})
    -> (!w1, !w2) attributes {topology = #topology} {
  %z1 = mpmd.fragment<mesh="m1", origin=["zero"]> () () {
    %0 = stablehlo.constant dense<0.0> : tensor<16x24xf32>
    mpmd.return %0 : tensor<16x24xf32>
  } : () -> !w1
  %z2 = mpmd.fragment<mesh="m2", origin=["zero"]> () () {
    %0 = stablehlo.constant dense<0.0> : tensor<24x4xf32>
    mpmd.return %0 : tensor<24x4xf32>
  } : () -> !w2
  %a:2 = mpmd.call @microbatch(%x0, %t0, %w1, %w2, %z1, %z2) {call_counter = 0 : ui32}
      : (!x, !t, !w1, !w2, !w1, !w2) -> (!w1, !w2)
  %b:2 = mpmd.call @microbatch(%x1, %t1, %w1, %w2, %a#0, %a#1) {call_counter = 1 : ui32}
      : (!x, !t, !w1, !w2, !w1, !w2) -> (!w1, !w2)
  %c:2 = mpmd.call @microbatch(%x2, %t2, %w1, %w2, %b#0, %b#1) {call_counter = 2 : ui32}
      : (!x, !t, !w1, !w2, !w1, !w2) -> (!w1, !w2)
  %d:2 = mpmd.call @microbatch(%x3, %t3, %w1, %w2, %c#0, %c#1) {call_counter = 3 : ui32}
      : (!x, !t, !w1, !w2, !w1, !w2) -> (!w1, !w2)
  %n1 = mpmd.fragment<mesh="m1", origin=["update"]> (%w1, %d#0)
      (%w: tensor<16x24xf32>, %g: tensor<16x24xf32>) {
    %rate = stablehlo.constant dense<9.765625e-04> : tensor<16x24xf32>
    %0 = stablehlo.multiply %g, %rate : tensor<16x24xf32>
    %1 = stablehlo.subtract %w, %0 : tensor<16x24xf32>
    mpmd.return %1 : tensor<16x24xf32>
  } : (!w1, !w1) -> !w1
  %n2 = mpmd.fragment<mesh="m2", origin=["update"]> (%w2, %d#1)
      (%w: tensor<24x4xf32>, %g: tensor<24x4xf32>) {
    %rate = stablehlo.constant dense<9.765625e-04> : tensor<24x4xf32>
    %0 = stablehlo.multiply %g, %rate : tensor<24x4xf32>
    %1 = stablehlo.subtract %w, %0 : tensor<24x4xf32>
    mpmd.return %1 : tensor<24x4xf32>
  } : (!w2, !w2) -> !w2
  return %n1, %n2 : !w1, !w2
}
