// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
mgpu.device_config @config #mgpu.device_config<numDevices = 1>
func.func @main(%x: memref<4xf32> {mgpu.name = "v"}, %y: memref<4xf32> {mgpu.name = "v"}) {
  return
}
