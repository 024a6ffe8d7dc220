// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A dynamic argument changes between replays, so nothing that shapes the graph
// may depend on it.
// RUN: sh %S/Inputs/check.sh mgpu-tune /dev/null %s --role n=dynamic | FileCheck %s --check-prefix=GRID
// RUN: sh %S/Inputs/check.sh mgpu-tune /dev/null %s --role n=dynamic --entry computed | FileCheck %s --check-prefix=COMPUTED
// RUN: sh %S/Inputs/check.sh mgpu-tune /dev/null %s --entry memory | FileCheck %s --check-prefix=MEMORY
// RUN: sh %S/Inputs/check.sh mgpu-tune /dev/null %s --arg n=2 --role n=input | FileCheck %s --check-prefix=ROLE

// GRID: {{[0-9]+}}:3: error: {{.*}}the grid size is a dynamic argument, which only kernels may read; give it the role specialised
// GRID: exit=1
// COMPUTED: error: {{.*}}host code computes with a dynamic argument; do it in the kernel, or give the argument the role specialised
// COMPUTED: exit=5
// MEMORY: argument 'x' cannot have role 'dynamic'; memrefs take input, output or resident, scalars specialised or dynamic
// MEMORY: exit=1
// ROLE: argument 'n' cannot have role 'input'
// ROLE: exit=2

mgpu.device_config @config #mgpu.device_config<numDevices = 1>

func.func @main(%n: index) {
  %c0 = arith.constant 0 : index
  %d = mgpu.get_device %c0 : !mgpu.device
  mgpu.launch %d grid(%n) block(%n) {
  }
  return
}

func.func @computed(%n: index) {
  %twice = arith.addi %n, %n : index
  return
}

func.func @memory(%x: memref<4xf32> {mgpu.role = "dynamic"}) {
  return
}
