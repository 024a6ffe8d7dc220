// RUN: mgpu-tune check %s 2>&1 | FileCheck %s
// RUN: mgpu-tune run %s --target host:1 2>&1 | FileCheck %s

// Which GPUs a program gets is not its own choice, and it hears so once.
// CHECK: device-ids.mlir:[[@LINE+3]]:1: warning: deviceIds is ignored: --target chooses the GPUs
// CHECK-NOT: warning

mgpu.device_config @config #mgpu.device_config<numDevices = 1, deviceIds = [7]>
func.func @main() {
  return
}
