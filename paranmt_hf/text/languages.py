"""The ISO 639-1 codes and names of languages; the Hub accepts the codes as the language of a dataset."""

from __future__ import annotations

import difflib

from paranmt_hf.errors import InputError

ENGLISH = "en"
# The code and the English name of each language of ISO 639-1, without withdrawn codes.
_NAMES = """
aa Afar, ab Abkhazian, ae Avestan, af Afrikaans, ak Akan, am Amharic, an Aragonese, ar Arabic, as Assamese, av
Avaric, ay Aymara, az Azerbaijani, ba Bashkir, be Belarusian, bg Bulgarian, bi Bislama, bm Bambara, bn Bengali, bo
Tibetan, br Breton, bs Bosnian, ca Catalan, ce Chechen, ch Chamorro, co Corsican, cr Cree, cs Czech, cu Church
Slavic, cv Chuvash, cy Welsh, da Danish, de German, dv Divehi, dz Dzongkha, ee Ewe, el Greek, en English, eo
Esperanto, es Spanish, et Estonian, eu Basque, fa Persian, ff Fulah, fi Finnish, fj Fijian, fo Faroese, fr French,
fy Western Frisian, ga Irish, gd Scottish Gaelic, gl Galician, gn Guarani, gu Gujarati, gv Manx, ha Hausa, he
Hebrew, hi Hindi, ho Hiri Motu, hr Croatian, ht Haitian, hu Hungarian, hy Armenian, hz Herero, ia Interlingua, id
Indonesian, ie Interlingue, ig Igbo, ii Sichuan Yi, ik Inupiaq, io Ido, is Icelandic, it Italian, iu Inuktitut, ja
Japanese, jv Javanese, ka Georgian, kg Kongo, ki Kikuyu, kj Kwanyama, kk Kazakh, kl Kalaallisut, km Khmer, kn
Kannada, ko Korean, kr Kanuri, ks Kashmiri, ku Kurdish, kv Komi, kw Cornish, ky Kyrgyz, la Latin, lb Luxembourgish,
lg Ganda, li Limburgish, ln Lingala, lo Lao, lt Lithuanian, lu Luba-Katanga, lv Latvian, mg Malagasy, mh
Marshallese, mi Maori, mk Macedonian, ml Malayalam, mn Mongolian, mr Marathi, ms Malay, mt Maltese, my Burmese, na
Nauru, nb Norwegian Bokmål, nd North Ndebele, ne Nepali, ng Ndonga, nl Dutch, nn Norwegian Nynorsk, no Norwegian,
nr South Ndebele, nv Navajo, ny Chichewa, oc Occitan, oj Ojibwa, om Oromo, or Odia, os Ossetian, pa Punjabi, pi
Pali, pl Polish, ps Pashto, pt Portuguese, qu Quechua, rm Romansh, rn Rundi, ro Romanian, ru Russian, rw
Kinyarwanda, sa Sanskrit, sc Sardinian, sd Sindhi, se Northern Sami, sg Sango, si Sinhala, sk Slovak, sl Slovenian,
sm Samoan, sn Shona, so Somali, sq Albanian, sr Serbian, ss Swati, st Southern Sotho, su Sundanese, sv Swedish, sw
Swahili, ta Tamil, te Telugu, tg Tajik, th Thai, ti Tigrinya, tk Turkmen, tl Tagalog, tn Tswana, to Tongan, tr
Turkish, ts Tsonga, tt Tatar, tw Twi, ty Tahitian, ug Uyghur, uk Ukrainian, ur Urdu, uz Uzbek, ve Venda, vi
Vietnamese, vo Volapük, wa Walloon, wo Wolof, xh Xhosa, yi Yiddish, yo Yoruba, za Zhuang, zh Chinese, zu Zulu
"""
LANGUAGES: dict[str, str] = {
    code: name for code, _, name in (entry.partition(" ") for entry in " ".join(_NAMES.split()).split(", "))
}


def check_language(code: str) -> None:
    """Reject a text that is no ISO 639-1 code of a language; the error suggests a similar code."""
    if code in LANGUAGES:
        return
    by_name = {name.lower(): known for known, name in LANGUAGES.items()}
    lowered = code.lower()
    near = by_name.get(lowered) or next(iter(difflib.get_close_matches(lowered, by_name, 1, 0.7)), "")
    near = by_name.get(near, near) or (lowered[:2] if lowered[:2] in LANGUAGES else "")
    hint = f"; {near} is {LANGUAGES[near]}" if near else ""
    raise InputError(f"language must be an ISO 639-1 code such as en, de or cs, was {code!r}{hint}")
