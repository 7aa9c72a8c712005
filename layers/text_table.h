// Rows of text as a table with aligned columns. Internal.
#pragma once

#include <string>
#include <vector>

namespace lockstep {

/// One line per row, columns two blanks apart, the columns of numbers (from `first_number` on)
/// flush right. All rows have the same number of cells.
[[nodiscard]] std::string text_table(const std::vector<std::vector<std::string>>& rows,
                                     std::size_t first_number);

}  // namespace lockstep
