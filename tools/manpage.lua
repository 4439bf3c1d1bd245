-- SPDX-License-Identifier: GPL-2.0-or-later
-- Fits pages of docs/ to a manual page: pandoc runs this between reading Markdown and writing roff.

-- A table is too wide for a terminal.  It becomes a list: the first cell, then the others, each with
-- the heading of its column if there are several.
function Table(block)
  local simple = pandoc.utils.to_simple_table(block)
  local items = {}
  for _, row in ipairs(simple.rows) do
    local words = {}
    for column = 2, #row do
      local text = pandoc.utils.blocks_to_inlines(row[column])
      if #text > 0 then
        if #words > 0 then
          table.insert(words, pandoc.Str(";"))
          table.insert(words, pandoc.Space())
        end
        local heading = pandoc.utils.stringify(simple.headers[column] or {})
        if #row > 2 and heading ~= "" then
          table.insert(words, pandoc.Str(pandoc.text.lower(heading) .. ":"))
          table.insert(words, pandoc.Space())
        end
        for _, word in ipairs(text) do
          table.insert(words, word)
        end
      end
    end
    local term = pandoc.Strong(pandoc.utils.blocks_to_inlines(row[1]))
    table.insert(items, { { term }, { { pandoc.Plain(words) } } })
  end
  return pandoc.DefinitionList(items)
end

-- "##" heads a section of the manual page, whose words are capitals; code in it stays as it is.
function Header(heading)
  heading.level = math.max(heading.level - 1, 1)
  if heading.level > 1 then
    return heading
  end
  return pandoc.walk_block(heading, {
    Str = function(word)
      return pandoc.Str(pandoc.text.upper(word.text))
    end,
  })
end

-- The address of a page is of no use on a terminal.
function Link(link)
  return link.content
end
