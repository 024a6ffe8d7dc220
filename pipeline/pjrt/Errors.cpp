// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/pjrt/Errors.h"

#include "pipeline/pjrt/Handlers.h"

namespace mgpu::pipeline::pjrt {

static const PJRT_Error_FunctionTable errorTable = {
    sizeof(PJRT_Error_FunctionTable),
    sizeof(PJRT_Error),
    nullptr,
    [](PJRT_Error *error) { delete error; },
    [](const PJRT_Error *error, const char **message, size_t *size) {
      *message = error->message.c_str();
      *size = error->message.size();
    },
    [](const PJRT_Error *error) { return error->code; },
    [](const PJRT_Error *, PJRT_Error_PayloadVisitor, void *) {},
};

PJRT_Error *refuse(PJRT_Error_Code code, std::string message) {
  return new PJRT_Error{&errorTable, code, std::move(message)};
}

PJRT_Error *refuse(const Error &error) {
  switch (error.kind) {
  case ErrorKind::Invalid:
  case ErrorKind::Usage:
    return refuse(PJRT_Error_Code_INVALID_ARGUMENT, error.message);
  case ErrorKind::Absent:
    return refuse(PJRT_Error_Code_NOT_FOUND, error.message);
  case ErrorKind::Unsupported:
    return refuse(PJRT_Error_Code_UNIMPLEMENTED, error.message);
  case ErrorKind::Internal:
    break;
  }
  return refuse(PJRT_Error_Code_INTERNAL, error.message);
}

PJRT_Error *invalid(std::string message) {
  return refuse(PJRT_Error_Code_INVALID_ARGUMENT, std::move(message));
}

PJRT_Error *unsupported(std::string message) {
  return refuse(PJRT_Error_Code_UNIMPLEMENTED, std::move(message));
}

PJRT_Error *isNull(const char *field) {
  return invalid("'" + std::string(field) +
                 "' of the call's argument must not be null");
}

//===----------------------------------------------------------------------===//
// Completion
//===----------------------------------------------------------------------===//

bool Completion::isDone() const {
  std::lock_guard lock(mutex);
  return done;
}

void Completion::finish(PJRT_Error_Code how, std::string why) {
  std::vector<Callback> calls;
  {
    std::lock_guard lock(mutex);
    if (done)
      return;
    done = true;
    code = how;
    message = std::move(why);
    calls.swap(waiting);
  }
  changed.notify_all();
  for (const Callback &call : calls)
    call(code, message);
}

void Completion::wait() const {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return done; });
}

PJRT_Error *Completion::error() const {
  std::lock_guard lock(mutex);
  return code == PJRT_Error_Code_OK ? nullptr : refuse(code, message);
}

void Completion::whenDone(Callback callback) {
  {
    std::lock_guard lock(mutex);
    if (!done) {
      waiting.push_back(std::move(callback));
      return;
    }
  }
  callback(code, message); // neither changes any more
}

const Done &alreadyDone() {
  static const Done done = [] {
    auto made = std::make_shared<Completion>();
    made->finish();
    return made;
  }();
  return done;
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

void Error_Destroy(PJRT_Error_Destroy_Args &args) { delete args.error; }

void Error_Message(PJRT_Error_Message_Args &args) {
  if (args.error)
    errorTable.message(args.error, &args.message, &args.message_size);
}

MGPU_PJRT_GET(Error_GetCode, error, code, args.error->code)

PJRT_Error *Error_ForEachPayload(PJRT_Error_ForEachPayload_Args &args) {
  MGPU_PJRT_NEEDS(error);
  return nullptr; // errors of this plugin have none
}

PJRT_Error *Event_Create(PJRT_Event_Create_Args &args) {
  args.event = new PJRT_Event{std::make_shared<Completion>()};
  return nullptr;
}

PJRT_Error *Event_Set(PJRT_Event_Set_Args &args) {
  MGPU_PJRT_NEEDS(event);
  if (args.event->of->isDone())
    return refuse(PJRT_Error_Code_FAILED_PRECONDITION,
                  "the event is set already");
  args.event->of->finish(
      args.error_code, args.error_message ? std::string(args.error_message,
                                                        args.error_message_size)
                                          : "");
  return nullptr;
}

PJRT_Error *Event_Destroy(PJRT_Event_Destroy_Args &args) {
  delete args.event;
  return nullptr;
}

MGPU_PJRT_GET(Event_IsReady, event, is_ready, args.event->of->isDone())

PJRT_Error *Event_Error(PJRT_Event_Error_Args &args) {
  MGPU_PJRT_NEEDS(event);
  return args.event->of->error();
}

PJRT_Error *Event_Await(PJRT_Event_Await_Args &args) {
  MGPU_PJRT_NEEDS(event);
  args.event->of->wait();
  return args.event->of->error();
}

PJRT_Error *Event_OnReady(PJRT_Event_OnReady_Args &args) {
  MGPU_PJRT_NEEDS(event);
  MGPU_PJRT_NEEDS(callback);
  args.event->of->whenDone(
      [callback = args.callback,
       user = args.user_arg](PJRT_Error_Code code, const std::string &message) {
        callback(code == PJRT_Error_Code_OK ? nullptr : refuse(code, message),
                 user);
      });
  return nullptr;
}

} // namespace mgpu::pipeline::pjrt
