// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt --split-input-file --verify-diagnostics %s

// -----
// expected-error @below {{a mesh has one axis "x", not two}}
sdy.mesh @mesh = <["x"=2, "x"=4]>

// -----
// expected-error @below {{a mesh has 1 to 1048576 devices}}
sdy.mesh @mesh = <["x"=2, "y"=0]>

// -----
// expected-error @below {{device_ids has 2 devices, and the mesh has 4}}
sdy.mesh @mesh = <["x"=4], device_ids=[1, 0]>

// -----
// expected-error @below {{device_ids must have each device from 0 to 1 once}}
sdy.mesh @mesh = <["x"=2], device_ids=[1, 1]>

// -----
// expected-error @below {{there is no mesh @mesh}}
func.func @f(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  return
}

// -----
sdy.mesh @mesh = <["x"=2]>
// expected-error @below {{the mesh has no axis "y"}}
func.func @f(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>}) {
  return
}

// -----
sdy.mesh @mesh = <["x"=2]>
// expected-error @below {{axis "x" is used twice}}
func.func @f(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"x"}]>}) {
  return
}

// -----
sdy.mesh @mesh = <["x"=2]>
// expected-error @below {{the sharding has 1 dimensions, and 'tensor<8x8xf32>' has 2}}
func.func @f(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  return
}

// -----
sdy.mesh @mesh = <["x"=8]>
// expected-error @below {{axis "x" of size 8 has no part (3)2}}
func.func @f(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(3)2}]>}) {
  return
}

// -----
sdy.mesh @mesh = <["x"=2]>
func.func @f(%a: tensor<8xf32>) {
  // expected-error @below {{must have a sharding for each of 1 results, not 2}}
  %0 = stablehlo.negate %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>, <@mesh, [{}]>]>} : tensor<8xf32>
  return
}

// -----
sdy.mesh @mesh = <["x"=2]>
func.func @f(%a: tensor<8xf32>) {
  // expected-error @below {{must have a body with 'tensor<4xf32>' for the operand 'tensor<8xf32>', not 'tensor<8xf32>'}}
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{}]>] manual_axes={"x"} (%x: tensor<8xf32>) {
    sdy.return %x : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----
sdy.mesh @mesh = <["x"=2]>
func.func @f(%a: tensor<7xf32>) {
  // expected-error @below {{cannot cut 'tensor<7xf32>' as}}
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{}]>] manual_axes={"x"} (%x: tensor<7xf32>) {
    sdy.return %x : tensor<7xf32>
  } : (tensor<7xf32>) -> tensor<7xf32>
  return
}

// -----
sdy.mesh @mesh = <["x"=2]>
func.func @f(%a: tensor<8xf32>) {
  // expected-error @below {{the mesh has no axis "y"}}
  %0 = sdy.data_flow_edge %a sharding=<@mesh, [{"y"}]> : tensor<8xf32>
  return
}

// -----
func.func @f(%a: tensor<8xf32>) {
  // expected-error @below {{one of the following enum values for attribute 'allowed_direction' [NONE, FORWARD, BACKWARD, BOTH]}}
  %0 = sdy.propagation_barrier %a allowed_direction=AROUND : tensor<8xf32>
  return
}
