// Puts the name of a layer in front of what goes wrong inside it. Internal.
#pragma once

#include <string>
#include <utility>

#include "lockstep/core/error.h"

namespace lockstep {

/// Returns call(); an Error that it throws is thrown again as the same type with "NAME: " in front.
template <class F>
decltype(auto) naming_layer(const std::string& name, F&& call) {
  try {
    return std::forward<F>(call)();
  } catch (const UsageError& error) {
    throw UsageError(message(name, ": ", error.what()));
  } catch (const ShapeError& error) {
    throw ShapeError(message(name, ": ", error.what()));
  } catch (const DataError& error) {
    throw DataError(message(name, ": ", error.what()));
  } catch (const IoError& error) {
    throw IoError(message(name, ": ", error.what()));
  } catch (const DeviceError& error) {
    throw DeviceError(message(name, ": ", error.what()));
  } catch (const CommError& error) {
    throw CommError(message(name, ": ", error.what()));
  } catch (const NonFiniteError& error) {
    throw NonFiniteError(message(name, ": ", error.what()));
  } catch (const Error& error) {
    throw Error(message(name, ": ", error.what()));
  }
}

}  // namespace lockstep
