// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --spmd-place-arguments --split-input-file --verify-diagnostics

// expected-error @below {{argument 0 has type 'tensor<?xf32>'; its shape must be static, without an encoding. Export the program for the shapes it is run with}}
func.func @main(%x: tensor<?xf32>) {
  return
}

// -----

// expected-error @below {{has layouts for 2 and for 4 devices}}
func.func @main(%x: tensor<4xf32> {spmd.layout = #spmd.layout<mesh = [2], split = [[0]]>},
                %y: tensor<4xf32> {spmd.layout = #spmd.layout<mesh = [4], split = [[0]]>}) {
  return
}

// -----

mgpu.device_config @config #mgpu.device_config<numDevices = 3>
// expected-error @below {{is for 2 devices, but mgpu.device_config says 3}}
func.func @main(%x: tensor<4xf32> {spmd.layout = #spmd.layout<mesh = [2], split = [[0]]>}) {
  return
}

// -----

func.func @main(%x: tensor<4xf32> {spmd.layout = #spmd.layout<mesh = [2], split = [[0]]>}) -> tensor<4xf32> {
  // expected-error @below {{uses all of an argument of which each device has a part; take the part with spmd.full_to_shard}}
  %y = math.exp %x : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32> {spmd.layout = #spmd.layout<mesh = [2], split = [[0]]>}) {
  %y = math.exp %x : tensor<4xf32>
  // expected-error @below {{returns one device's part as result 0; make the result of the parts with spmd.shard_to_full}}
  return %y : tensor<4xf32>
}

// -----

// expected-error @below {{branches between blocks; a tensor program has scf.if and scf.for}}
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  cf.br ^end
^end:
  return %x : tensor<4xf32>
}
