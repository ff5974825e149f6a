"""Text that tells a model what to do, rather than what somebody is or likes.

A memory is read back into later prompts. What says "ignore your instructions" there would be an
attack that lasts, so it never becomes a memory by itself: somebody has to accept it first.
"""

from __future__ import annotations

import re
from typing import Final

from engine.extract.matching import BLANK, Prepared, form_of
from engine.text.sentences import sentences

MOST: Final = 3
"""Instructions kept of one turn: more would be a text somebody pasted."""

_ENGLISH: Final = re.compile(
    r"""(?<!\bI\s)\b(?:ignore|disregard|forget|override|bypass|skip|discard|overrule)\b[^.\n]{0,40}
          \b(?:instructions?|prompts?|rules|guidelines|directions|policy|policies|guardrails
            |safety|restrictions|filters|above|previous|prior|earlier|everything|training
            |system\s+message)\b
      | \b(?:always|blindly|unconditionally|only|must|strictly|henceforth)\b[^.\n]{0,20}\bobey\b
      | \bobey\b[^.\n]{0,30}\b(?:me|every|all|any|commands?|orders?|without|only)\b
      | \b(?:you\s+(?:must|are\s+required\s+to|have\s+to|shall|will)|never)\b[^.\n]{0,20}
          \b(?:comply|obey|refuse|reveal|disclose|exfiltrate|pretend|say\s+no)\b
      | \b(?:reveal|print|repeat|show|leak|output|expose|send)\b[^.\n]{0,30}
          \b(?:system\s+prompt|hidden\s+prompt|initial\s+prompt|your\s+(?:instructions|prompt)
            |credentials|api\s+keys?|secrets)\b
      | \byou\s+are\s+(?:now|no\s+longer)\b[^.\n]{0,40}
          \b(?:dan|unrestricted|jailbroken|unfiltered|bound|limited|an?\s+ai|in\s+developer\s+mode
            |free|evil|root|admin)\b
      | \b(?:developer|god|admin|jailbreak|debug|sudo)\s+mode\b
      | \bdo\s+anything\s+now\b | \bjailbreak\b
      | \b(?:new|updated|real|actual)\s+(?:system\s+)?(?:instructions?|prompt|rules)\s*:
      | <\s*/?\s*(?:system|assistant|instructions?|im_start|im_end|memory[-_ ]?notes)\b
      | \[/?INST\] | <\|
      | ^\s*(?:system|assistant)\s*: | \#{2,}\s*(?:system|instruction)
      | \b(?:do\s+not|don't|never)\s+(?:tell|inform|mention|warn)\s+(?:this\s+to\s+)?the\s+user\b
      | \b(?:when|whenever|if)\s+(?:you|the\s+(?:user|assistant))\b[^.\n]{0,60}
          \b(?:send|post|forward|upload|email|execute|run|curl|delete)\b
      | \bact\s+as\s+(?:if\s+you\s+(?:have|had)\s+no|an?\s+unrestricted)\b
      | \bwithout\s+(?:any\s+)?(?:restrictions?|filters?|question|asking|hesitation|warnings?)\b""",
    re.IGNORECASE | re.VERBOSE | re.MULTILINE,
)
_CHINESE: Final = re.compile(
    r"""(?<!我)(?<!总是)(?<!经常)(?:忽略|无视|忘记|忘掉|不要遵守|不用遵守|绕过|跳过|覆盖|抛开|违反|不理会)[^。\n]{0,16}
          (?:指令|提示|提示词|规则|设定|限制|要求|指示|说明|对话|约束|政策|内容)
      | (?:绝对|永远|始终|无条件|一律|必须|只能|完全)[^。\n]{0,8}(?:服从|听从|遵从)
      | (?:服从|听从)(?:我|一切|所有)[^。\n]{0,10}(?:命令|指令|吩咐|要求)?
      | (?:泄露|透露|输出|打印|显示|告诉我|重复|公开)[^。\n]{0,12}
          (?:系统提示|提示词|系统指令|初始指令|密钥)
      | 你(?:现在|从现在起|已经)(?:是|不再是|没有|不受)[^。\n]{0,16}
          (?:限制|约束|AI|越狱|DAN|助手|规则)
      | (?:开发者|上帝|越狱|管理员|调试)模式 | 不要(?:告诉|通知|提醒)用户
      | (?:新的?|真正的)(?:系统)?(?:指令|提示词|规则)[：:] | 不得拒绝 | 不(?:要|能|许|准)拒绝""",
    re.VERBOSE,
)
_JAPANESE: Final = re.compile(
    r"""(?:指示|命令|プロンプト|ルール|規則|制約|制限|設定|ガイドライン|会話|ポリシー)[^。\n]{0,10}
          (?:を|は)?(?:すべて|全て|全部)?(?:無視|忘れ|破棄|上書き|無効|破っ|従わな)
      | (?:無条件|絶対|必ず|常に|すべて|何でも|今後)[^。\n]{0,14}
          (?:服従|従え|従って|従うこと|言うことを聞)
      | (?:システムプロンプト|初期プロンプト|内部指示|内部の指示|認証情報)[^。\n]{0,12}
          (?:表示|教え|出力|公開|漏ら|開示|繰り返)
      | (?:あなた|お前|君)は(?:今から|もう|もはや|これから)[^。\n]{0,20}
          (?:制限|制約|AIでは|脱獄|無制限|自由)
      | (?:開発者|管理者|脱獄|デバッグ|ゴッド)モード | ジェイルブレイク
      | ユーザーに(?:は)?(?:言わないで|伝えないで|知らせないで|教えないで|通知しないで)
      | 新しい(?:システム)?(?:指示|プロンプト|ルール)[：:]
      | 拒否(?:しないで|してはいけ|するな|は禁止)""",
    re.VERBOSE,
)


def is_instruction(text: str) -> bool:
    """Whether a text reads like orders to a model, in English, Chinese or Japanese."""
    form = form_of(text)
    return any(pattern.search(form) for pattern in (_ENGLISH, _CHINESE, _JAPANESE))


def instructions_in(prepared: Prepared) -> list[str]:
    """The first sentences of a turn that are instructions, as they were written."""
    found: list[str] = []
    position = 0
    for sentence in sentences(prepared.form):
        position = prepared.form.index(sentence, position)
        own = sentence.split(BLANK)[0].strip()
        if own and is_instruction(own):
            found.append(prepared.text[position : position + len(own)])
        position += len(sentence)
    return found[:MOST]
