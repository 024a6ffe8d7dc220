// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Numbers that containers and types of ours cannot hold, and work without an
// end: each is a sentence.
// RUN: split-file %s %t
// RUN: sh %S/Inputs/check.sh mgpu-tune /dev/null %t/groups | FileCheck %s --check-prefix=GROUPS
// RUN: sh %S/Inputs/check.sh mgpu-tune /dev/null %t/pairs | FileCheck %s --check-prefix=PAIRS
// RUN: sh %S/Inputs/check.sh mgpu-tune /dev/null %t/mesh | FileCheck %s --check-prefix=MESH
// RUN: sh %S/Inputs/check.sh mgpu-tune /dev/null %t/partitions | FileCheck %s --check-prefix=PARTITIONS
// RUN: sh %S/Inputs/check.sh mgpu-tune /dev/null %t/alias | FileCheck %s --check-prefix=ALIAS
// RUN: sh %S/Inputs/check.sh mgpu-tune /dev/null %t/endless | FileCheck %s --check-prefix=ENDLESS
// RUN: sh %S/Inputs/check.sh mgpu-tune /dev/null %t/unchanged | FileCheck %s --check-prefix=ENDLESS
// RUN: sh %S/Inputs/check.sh mgpu-tune /dev/null %t/calls --node-limit 100 | FileCheck %s --check-prefix=CALLS
// RUN: sh %S/Inputs/check.sh mgpu-tune /dev/null %t/calls | FileCheck %s --check-prefix=FEW
// RUN: sh %S/Inputs/check.sh mgpu-tune /dev/null %t/attribute | FileCheck %s --check-prefix=ATTRIBUTE

// GROUPS: error: 'stablehlo.all_reduce' op must have each of the devices 0 to 9223372036854775807 in a group
// GROUPS: exit=1
// PAIRS: error: 'stablehlo.collective_permute' op {{.*}}9223372036854775807
// PAIRS: exit={{[15]$}}
// MESH: error: {{.*}}is for more than 65536 devices
// MESH: exit=5
// PARTITIONS: error: {{.*}}is for more than 65536 devices
// PARTITIONS: exit=5
// ALIAS: exit={{[01]$}}
// ENDLESS: error: the while loop at {{.*}}:[[#]]:{{.*}} goes on after {{[0-9]+}} trips, whose operations are more than the 4000000 that a program may have; if it ends, raise --node-limit
// ENDLESS: exit=5
// CALLS: error: {{.*}}@f1 at {{.*}}:[[#]]:{{.*}} has 1{{[0-9]+}} operations with all that it calls in its place, more than the 100 that a program may have; raise --node-limit
// CALLS: exit=5
// FEW: exit=0
// ATTRIBUTE: error: {{.*}}has no attribute 'mgpu.nam'; did you mean 'mgpu.name'?
// ATTRIBUTE: exit=1

//--- groups
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.all_reduce"(%a) <{replica_groups = dense<[[9223372036854775807, 0]]> : tensor<1x2xi64>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %z = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %z : tensor<f32>
  }) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
//--- pairs
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.collective_permute"(%a) <{source_target_pairs = dense<[[9223372036854775807, 0], [0, 9223372036854775807]]> : tensor<2x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
//--- mesh
sdy.mesh @mesh = <["x"=100000]>
func.func @main(%a: tensor<100000xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<100000xf32> {
  %0 = stablehlo.add %a, %a : tensor<100000xf32>
  return %0 : tensor<100000xf32>
}
//--- partitions
module attributes {mhlo.num_partitions = 4611686018427387904 : i64, mhlo.num_replicas = 4611686018427387904 : i64} {
  func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
    %0 = "stablehlo.all_reduce"(%a) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %z = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %z : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
//--- alias
func.func @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : ui32}) -> tensor<4xf32> {
  %0 = stablehlo.add %a, %a : tensor<4xf32>
  return %0 : tensor<4xf32>
}
//--- endless
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = "stablehlo.while"(%c, %a) ({
  ^bb0(%i: tensor<i32>, %x: tensor<4xf32>):
    %t = stablehlo.constant dense<true> : tensor<i1>
    "stablehlo.return"(%t) : (tensor<i1>) -> ()
  }, {
  ^bb0(%i: tensor<i32>, %x: tensor<4xf32>):
    %y = stablehlo.negate %x : tensor<4xf32>
    "stablehlo.return"(%i, %y) : (tensor<i32>, tensor<4xf32>) -> ()
  }) : (tensor<i32>, tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>)
  return %0#1 : tensor<4xf32>
}
//--- unchanged
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %least = stablehlo.constant dense<-5> : tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %0:2 = "stablehlo.while"(%c, %a) ({
  ^bb0(%i: tensor<i32>, %x: tensor<4xf32>):
    %t = stablehlo.compare GT, %i, %least : (tensor<i32>, tensor<i32>) -> tensor<i1>
    "stablehlo.return"(%t) : (tensor<i1>) -> ()
  }, {
  ^bb0(%i: tensor<i32>, %x: tensor<4xf32>):
    %j = stablehlo.multiply %i, %two : tensor<i32>
    %y = stablehlo.negate %x : tensor<4xf32>
    "stablehlo.return"(%j, %y) : (tensor<i32>, tensor<4xf32>) -> ()
  }) : (tensor<i32>, tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>)
  return %0#1 : tensor<4xf32>
}
//--- calls
func.func private @f5(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.negate %a : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @f4(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @f5(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @f5(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f3(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @f4(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @f4(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f2(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @f3(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @f3(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f1(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @f2(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @f2(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @f1(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
//--- attribute
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.negate %a {mgpu.nam = "x"} : tensor<4xf32>
  return %0 : tensor<4xf32>
}
