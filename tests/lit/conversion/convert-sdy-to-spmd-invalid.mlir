// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt --convert-sdy-to-spmd --split-input-file --verify-diagnostics %s

// -----
sdy.mesh @mesh = <["x"=2]>
sdy.mesh @other = <["x"=4]>
func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %b = sdy.sharding_constraint %a <@mesh, [{"x"}]> : tensor<8xf32>
  // expected-error @below {{has a sharding of a second mesh}}
  %c = sdy.sharding_constraint %b <@other, [{"x"}]> : tensor<8xf32>
  return %c : tensor<8xf32>
}

// -----
sdy.mesh @mesh = <["x"=2], device_ids=[1, 0]>
func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{has a sharding of a mesh that lists its devices}}
  %b = sdy.sharding_constraint %a <@mesh, [{"x"}]> : tensor<8xf32>
  return %b : tensor<8xf32>
}

// -----
sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<3xf32>) -> tensor<3xf32> {
  // expected-error @below {{has dimension 0 of 'tensor<3xf32>' cut in 4 parts, of which some would be empty; cut it over fewer devices}}
  %b = sdy.sharding_constraint %a <@mesh, [{"x"}]> : tensor<3xf32>
  return %b : tensor<3xf32>
}

// -----
func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'stablehlo.negate' has a sharding of XLA, and no manual computation says what each device does}}
  %b = stablehlo.negate %a {mhlo.sharding = "{devices=[2]<=[2]}"} : tensor<8xf32>
  return %b : tensor<8xf32>
}

// -----
func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'stablehlo.negate' has a sharding of XLA, and no manual computation says what each device does}}
  %b = stablehlo.negate %a {mhlo.sharding = "{devices=[4294967296]<=[4294967296]}"} : tensor<8xf32>
  return %b : tensor<8xf32>
}

// -----
func.func @main(%a: tensor<8xf32>) -> tensor<4xf32> {
  // expected-error @below {{has no mhlo.sharding that says which part each device has}}
  %0 = stablehlo.custom_call @SPMDFullToShardShape(%a) {mhlo.sharding = "{manual}"} : (tensor<8xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----
func.func @main(%a: tensor<8xf32> {mhlo.sharding = "{devices=[2]<=[2]"}) -> tensor<4xf32> {
  // expected-error @below {{has the sharding '{devices=[2]<=[2]', which this version does not read}}
  %0 = stablehlo.custom_call @SPMDFullToShardShape(%a) {mhlo.sharding = "{manual}"} : (tensor<8xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----
func.func @main(%a: tensor<8xf32> {mhlo.sharding = "{devices=[2]<=[2]}"}) -> tensor<2xf32> {
  // expected-error @below {{cannot have 'tensor<2xf32>' as a part of 'tensor<8xf32>'}}
  %0 = stablehlo.custom_call @SPMDFullToShardShape(%a) {mhlo.sharding = "{manual}"} : (tensor<8xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%a: tensor<8xf32>) -> tensor<16xf32> {
    // expected-error @below {{has 2 devices in its groups; 4 run the program}}
    %0 = "stablehlo.all_gather"(%a) {all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<8xf32>) -> tensor<16xf32>
    return %0 : tensor<16xf32>
  }
}

// -----
func.func @main(%a: tensor<8xf32>) -> tensor<24xf32> {
  // expected-error @below {{gives 'tensor<16xf32>' on the devices of its groups, not 'tensor<24xf32>'}}
  %0 = "stablehlo.all_gather"(%a) {all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<8xf32>) -> tensor<24xf32>
  return %0 : tensor<24xf32>
}

// -----
func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = "stablehlo.all_reduce"(%a) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    // expected-error @below {{stands in the region of 'stablehlo.all_reduce', which may have elementwise operations alone}}
    %r = stablehlo.reshape %x : (tensor<f32>) -> tensor<f32>
    stablehlo.return %r : tensor<f32>
  }) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----
func.func @main(%a: tensor<8xcomplex<f32>>) -> tensor<16xcomplex<f32>> {
  // expected-error @below {{devices exchange integers and floats of static shape}}
  %0 = "stablehlo.all_gather"(%a) {all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<8xcomplex<f32>>) -> tensor<16xcomplex<f32>>
  return %0 : tensor<16xcomplex<f32>>
}

// -----
module attributes {mhlo.num_partitions = 8 : i32} {
  sdy.mesh @mesh = <["x"=8]>
  func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
    %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%b: tensor<1xf32>) {
      // expected-error @below {{'stablehlo.collective_permute' op names device 8 in [0, 8], in a program for 8 devices}}
      %1 = "stablehlo.collective_permute"(%b) <{source_target_pairs = dense<[[0, 8]]> : tensor<1x2xi64>}> : (tensor<1xf32>) -> tensor<1xf32>
      sdy.return %1 : tensor<1xf32>
    } : (tensor<8xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}

// -----

// expected-error@+1 {{mhlo.num_partitions is -1; a program is of one at least}}
module attributes {mhlo.num_partitions = -1 : i32} {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
}
